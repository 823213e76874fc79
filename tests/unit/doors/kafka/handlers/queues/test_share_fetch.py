"""ShareFetch and ShareAcknowledge over the wire: what is delivered, to whom, and how often."""

import asyncio

import pytest

from tailrace.model.limits import SHARE_SESSION_PARTITIONS_MAX
from tailrace.wire.errors import Error
from tailrace.wire.messages.acknowledgements import PartitionToAcknowledge, TopicToAcknowledge
from tailrace.wire.messages.metadata import MetadataRequest
from tests.unit.doors.kafka.handlers.queues.taker import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Taker,
    begin_at,
    group_settings,
)
from tests.unit.doors.kafka.served import Served, with_broker
from tests.unit.doors.kafka.transacted import Transacted

FIVE = (1, 2, 3, 4, 5)  # timestamps
ONE_RECORD = {"max_records": 1, "share_acquire_mode": 1}


async def filled(served: Served, *sizes: int) -> bytes:
    """A topic with batches of these sizes, which group g reads from its beginning."""
    topic_id = await served.make_topic("t")
    for size in sizes:
        await served.produce("t", *range(1, size + 1))
    await begin_at(served, topic_id, 0)
    return topic_id


@with_broker()
async def test_what_is_accepted_is_not_delivered_again(served: Served) -> None:
    topic_id = await filled(served, 5)
    one, other = await Taker.connect(served, topic_id, "one"), await Taker.connect(served, topic_id, "other")
    assert await one.take() == [(0, 4, 1)]
    assert await other.take() == [], "another member holds them"
    assert await one.take((0, 4, ACCEPT)) == []
    one.client.close()
    assert await other.take() == []


@with_broker()
async def test_released_records_come_back_and_rejected_ones_do_not(served: Served) -> None:
    topic_id = await filled(served, 5)
    one = await Taker.connect(served, topic_id)
    assert await one.take() == [(0, 4, 1)]
    assert await one.acknowledge((0, 0, ACCEPT), (1, 2, RELEASE), (3, 3, REJECT), (4, 4, RELEASE)) == 0
    assert await one.take() == [(1, 2, 2), (4, 4, 2)]


@with_broker()
async def test_a_record_that_comes_back_too_often_is_given_up(served: Served) -> None:
    topic_id = await filled(served, 1)
    await group_settings(served, share_delivery_count_limit="3")
    one = await Taker.connect(served, topic_id)
    for count in (1, 2, 3):
        assert await one.take() == [(0, 0, count)]
        assert await one.acknowledge((0, 0, RELEASE)) == 0
    assert await one.take() == []


@with_broker()
async def test_at_its_last_delivery_a_record_travels_alone(served: Served) -> None:
    topic_id = await filled(served, 4)
    await group_settings(served, share_delivery_count_limit="2")
    one = await Taker.connect(served, topic_id)
    assert await one.take() == [(0, 3, 1)]
    assert await one.acknowledge((0, 3, RELEASE)) == 0
    assert [await one.take() for _ in range(4)] == [[(offset, offset, 2)] for offset in range(4)]


@with_broker()
async def test_when_the_connection_ends_what_it_holds_is_available_at_once(served: Served) -> None:
    topic_id = await filled(served, 5)
    one, other = await Taker.connect(served, topic_id, "one"), await Taker.connect(served, topic_id, "other")
    assert await one.take() == [(0, 4, 1)]
    waiting = asyncio.ensure_future(other.take(max_wait_ms=5_000))
    await asyncio.sleep(0)
    one.client.close()
    assert await waiting == [(0, 4, 2)], "and a request that waits is answered"


@with_broker()
async def test_a_closing_request_acknowledges_and_releases_the_rest(served: Served) -> None:
    topic_id = await filled(served, 5)
    one, other = await Taker.connect(served, topic_id, "one"), await Taker.connect(served, topic_id, "other")
    assert await one.take() == [(0, 4, 1)]
    assert await one.take((0, 1, ACCEPT), share_session_epoch=-1) == []
    assert await other.take() == [(2, 4, 2)]
    assert (await one.fetch(share_session_epoch=5)).error_code == Error.SHARE_SESSION_NOT_FOUND


@with_broker()
async def test_a_request_that_waits_is_answered_when_records_arrive(served: Served) -> None:
    topic_id = await filled(served)
    one = await Taker.connect(served, topic_id)
    waiting = asyncio.ensure_future(one.take(max_wait_ms=5_000))
    await asyncio.sleep(0)
    await served.produce("t", *FIVE)
    assert await waiting == [(0, 4, 1)]


@with_broker()
async def test_of_members_that_wait_each_gets_its_record(served: Served) -> None:
    topic_id = await filled(served)
    members = [await Taker.connect(served, topic_id, f"m{number}") for number in range(3)]
    assert [await one.take() for one in members] == [[], [], []]
    waiting = [asyncio.ensure_future(one.take(max_wait_ms=30_000, **ONE_RECORD)) for one in members]
    await served.call(MetadataRequest(topics=None), 1)  # the requests before have arrived
    await served.produce("t", 1, 2, 3)
    async with asyncio.timeout(10):
        assert sorted(await asyncio.gather(*waiting)) == [[(0, 0, 1)], [(1, 1, 1)], [(2, 2, 1)]]


@with_broker()
async def test_a_member_that_waited_and_left_holds_up_nobody(served: Served) -> None:
    topic_id = await filled(served)
    first, second = [await Taker.connect(served, topic_id, name) for name in ("first", "second")]
    waiting = []
    for one in (first, second):
        waiting.append(asyncio.ensure_future(one.take(max_wait_ms=30_000, **ONE_RECORD)))
        await served.call(MetadataRequest(topics=None), 1)  # the request before has arrived
    first.client.close()
    await served.produce("t", 1)
    async with asyncio.timeout(10):
        assert await waiting[1] in ([(0, 0, 1)], [(0, 0, 2)]), "twice if the first got it before it left"
    waiting[0].cancel()


@with_broker()
async def test_whole_batches_or_exactly_as_many_as_wanted(served: Served) -> None:
    topic_id = await filled(served, 5, 5, 5)
    one = await Taker.connect(served, topic_id)
    assert await one.take(max_records=7) == [(0, 9, 1)], "to the end of the batch"
    assert await one.take(max_records=2, share_acquire_mode=1) == [(10, 11, 1)]
    assert await one.take(max_records=7, share_acquire_mode=1) == [(12, 14, 1)]


@with_broker()
async def test_records_are_taken_up_to_the_number_or_the_bytes_however_large_they_are(served: Served) -> None:
    topic_id = await filled(served)
    for timestamp in range(100):
        await served.produce("t", timestamp, value=bytes(1_000))
    one = await Taker.connect(served, topic_id)
    assert await one.take(max_records=60) == [(0, 59, 1)]
    answer = await one.fetch(max_bytes=10_500)
    assert [(got.first_offset, got.last_offset) for got in answer.topics[0].partitions[0].acquired_records] == [
        (60, 68)
    ]
    assert len(answer.topics[0].partitions[0].records) <= 10_500
    assert await one.take() == [(69, 99, 1)]


@with_broker()
async def test_a_partition_has_a_limited_number_of_locks(served: Served) -> None:
    topic_id = await filled(served, 150)
    await group_settings(served, share_partition_max_record_locks="100")
    one = await Taker.connect(served, topic_id)
    assert await one.take() == [(0, 99, 1)]
    assert await one.take() == []
    assert await one.acknowledge((50, 99, ACCEPT)) == 0
    assert await one.take() == [(100, 149, 1)], "one that is stuck does not stop the others"


@with_broker()
async def test_locks_are_renewed_from_version_2_on(served: Served) -> None:
    topic_id = await filled(served, 5)
    one = await Taker.connect(served, topic_id)
    assert await one.take() == [(0, 4, 1)]
    assert await one.acknowledge((0, 4, RENEW), is_renew_ack=True) == 0
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    assert await one.take((0, 4, RENEW), is_renew_ack=True, **nothing) == []
    assert (await one.fetch((0, 4, RENEW), is_renew_ack=True)).error_code == Error.INVALID_REQUEST
    assert await one.acknowledge((0, 4, RENEW)) == Error.INVALID_REQUEST
    assert await one.acknowledge((0, 4, RENEW), version=1) == Error.INVALID_REQUEST
    await group_settings(served, share_renew_acknowledge_enable="false")
    assert await one.acknowledge((0, 4, RENEW), is_renew_ack=True) == Error.INVALID_REQUEST


@with_broker()
async def test_acknowledgements_that_do_not_hold_change_nothing(served: Served) -> None:
    topic_id = await filled(served, 5)
    one, other = await Taker.connect(served, topic_id, "one"), await Taker.connect(served, topic_id, "other")
    assert await one.take() == [(0, 4, 1)]
    await other.take()
    assert await other.acknowledge((0, 4, ACCEPT)) == Error.INVALID_RECORD_STATE, "another's"
    assert await one.acknowledge((0, 1, ACCEPT), (5, 5, ACCEPT)) == Error.INVALID_REQUEST, "never delivered"
    assert await one.acknowledge((0, 1, ACCEPT), (1, 2, RELEASE)) == Error.INVALID_REQUEST, "one offset twice"
    assert await one.acknowledge((0, 1, 9)) == Error.INVALID_REQUEST, "an unknown type"
    assert await one.acknowledge((4, 0, ACCEPT)) == Error.INVALID_REQUEST
    assert await one.acknowledge((0, 4, ACCEPT)) == 0, "nothing of that has counted"
    assert await one.acknowledge((0, 4, ACCEPT)) == 0, "below the start everything is finished"


@with_broker()
async def test_sessions_have_epochs(served: Served) -> None:
    topic_id = await filled(served, 5)
    one = await Taker.connect(served, topic_id)
    assert (await one.fetch(share_session_epoch=1)).error_code == Error.SHARE_SESSION_NOT_FOUND
    assert await one.acknowledge((0, 0, ACCEPT)) == Error.INVALID_SHARE_SESSION_EPOCH, "it opens none"
    assert (await one.fetch((0, 0, ACCEPT))).error_code == Error.INVALID_REQUEST, "nothing was delivered yet"
    await one.take()
    assert (await one.fetch(share_session_epoch=7)).error_code == Error.INVALID_SHARE_SESSION_EPOCH
    assert await one.acknowledge((0, 0, ACCEPT)) == 0
    one.epoch = 0
    assert await one.take() == [], "a new session"
    assert await one.acknowledge((1, 4, ACCEPT)) == 0, "what the member had acquired before is still its own"


@with_broker(group_share_max_share_sessions=1)
async def test_the_number_of_sessions_is_limited(served: Served) -> None:
    topic_id = await filled(served, 5)
    one, other = await Taker.connect(served, topic_id, "one"), await Taker.connect(served, topic_id, "other")
    assert await one.take() == [(0, 4, 1)]
    assert (await other.fetch()).error_code == Error.SHARE_SESSION_LIMIT_REACHED
    await one.take(share_session_epoch=-1)
    assert await other.take() == [(0, 4, 2)]


@with_broker()
async def test_a_session_cannot_grow_for_ever(served: Served) -> None:
    topic_id = await filled(served, 1)
    one = await Taker.connect(served, topic_id)
    for begin in range(0, SHARE_SESSION_PARTITIONS_MAX, 1000):
        some = tuple(PartitionToAcknowledge(partition=begin + at) for at in range(1000))
        answer = await one.fetch(topics=(TopicToAcknowledge(topic_id=one.topic_id, partitions=some),), max_records=0)
        assert answer.error_code == 0
    more = PartitionToAcknowledge(partition=SHARE_SESSION_PARTITIONS_MAX)
    answer = await one.fetch(topics=(TopicToAcknowledge(topic_id=one.topic_id, partitions=(more,)),))
    assert answer.error_code == Error.INVALID_REQUEST


@pytest.mark.parametrize(("member", "group"), [("m" * 37, "g"), ("", "g"), ("m", "")])
def test_members_without_a_proper_name_are_refused(member: str, group: str, tmp_path: object) -> None:
    @with_broker()
    async def check(served: Served) -> None:
        topic_id = await filled(served, 1)
        one = await Taker.connect(served, topic_id, member, group)
        assert (await one.fetch()).error_code == Error.INVALID_REQUEST
        assert await one.acknowledge((0, 0, ACCEPT), share_session_epoch=1) == Error.INVALID_REQUEST

    check(tmp_path)  # type: ignore[arg-type]


@with_broker()
async def test_a_partition_that_the_group_does_not_read(served: Served) -> None:
    topic_id = await served.make_topic("t")
    one = await Taker.connect(served, topic_id)
    answer = await one.fetch()
    assert answer.topics[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


@with_broker()
async def test_deleted_records_are_passed_over(served: Served) -> None:
    topic_id = await filled(served, 5, 5)
    partition = served.node.hosted.find("t", 0)
    assert await partition.begin_at(7)
    one = await Taker.connect(served, topic_id)
    assert await one.take() == [(7, 9, 1)]


@with_broker()
async def test_aborted_records_are_delivered_only_to_groups_that_read_uncommitted(served: Served) -> None:
    topic_id = await served.make_topic("t")
    producer = Transacted(served.call)
    await producer.begin()
    for committed in (False, True):
        await producer.add({"t": (0,)})
        assert await producer.write("t", "a", "b", "c") == 0
        await producer.end(committed=committed)
    await group_settings(served, "strict", share_isolation_level="read_committed")
    for group, expected in (("strict", [(4, 6, 1)]), ("loose", [(0, 2, 1), (4, 6, 1)])):
        await begin_at(served, topic_id, 0, group)
        one = await Taker.connect(served, topic_id, group=group)
        assert await one.take(max_wait_ms=5_000) == expected
