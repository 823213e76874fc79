"""`ShareSession`: epochs, and which partitions each request names (KIP-932, share sessions)."""

from tailrace.client.shares.session import EPOCH_MAX, FetchLimits, ShareSession
from tailrace.model.ids import Id, TopicPartition
from tailrace.wire.messages.acknowledgements import AcknowledgementBatch
from tailrace.wire.messages.share_fetch import ShareFetchRequest

A, B = Id(b"a" * 16), Id(b"b" * 16)
A0, A1, B0 = TopicPartition(A, 0), TopicPartition(A, 1), TopicPartition(B, 0)
LIMITS = FetchLimits(max_wait_ms=500, max_records=7, mode="record_limit")
SAID = (AcknowledgementBatch(first_offset=3, last_offset=5, acknowledge_types=(1,)),)


def named(request: ShareFetchRequest) -> list[TopicPartition]:
    return [TopicPartition(topic.topic_id, one.partition) for topic in request.topics for one in topic.partitions]


def forgotten(request: ShareFetchRequest) -> list[TopicPartition]:
    return [TopicPartition(topic.topic_id, one) for topic in request.forgotten_topics for one in topic.partitions]


def opened(*wanted: TopicPartition) -> ShareSession:
    session = ShareSession("g", "m")
    session.fetch(wanted, LIMITS, {})
    session.answered()
    return session


def test_the_first_request_opens_the_session_with_all_partitions() -> None:
    session = ShareSession("g", "m")
    assert not session.is_open
    request = session.fetch([A0, A1, B0], LIMITS, {})
    assert (request.group_id, request.member_id, request.share_session_epoch) == ("g", "m", 0)
    assert (request.max_records, request.batch_size, request.share_acquire_mode) == (7, 7, 1)
    assert named(request) == [A0, A1, B0]
    session.answered()
    assert session.is_open


def test_later_requests_name_only_what_changed() -> None:
    session = opened(A0, B0)
    request = session.fetch([A0, A1], LIMITS, {})
    assert request.share_session_epoch == 1
    assert (named(request), forgotten(request)) == ([A1], [B0])
    session.answered()
    request = session.fetch([A0, A1], LIMITS, {})
    assert request.share_session_epoch == 2
    assert (named(request), forgotten(request)) == ([], [])


def test_what_is_acknowledged_and_not_fetched_is_forgotten_in_the_same_request() -> None:
    session = opened(A0)
    request = session.fetch([A0], LIMITS, {A0: SAID, B0: SAID})
    assert [one.acknowledgement_batches for topic in request.topics for one in topic.partitions] == [SAID, SAID]
    assert (named(request), forgotten(request)) == ([A0, B0], [B0])


def test_acknowledgements_alone_take_an_epoch_too() -> None:
    session = opened(A0)
    request = session.acknowledge({A0: SAID}, renews=True)
    assert (request.share_session_epoch, request.is_renew_ack) == (1, True)
    assert request.topics[0].partitions[0].acknowledgement_batches == SAID
    session.answered()
    assert session.fetch([A0], LIMITS, {}).share_session_epoch == 2


def test_after_a_reset_everything_is_named_again() -> None:
    session = opened(A0)
    session.reset()
    request = session.fetch([A0], LIMITS, {})
    assert (request.share_session_epoch, named(request)) == (0, [A0])


def test_closing_has_epoch_minus_one() -> None:
    session = opened(A0)
    assert session.close().share_session_epoch == -1
    assert not session.is_open


def test_epochs_begin_again_at_one() -> None:
    session = opened(A0)
    session._epoch = EPOCH_MAX
    session.answered()
    assert session.fetch([A0], LIMITS, {}).share_session_epoch == 1
