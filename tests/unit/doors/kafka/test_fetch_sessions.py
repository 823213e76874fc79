"""Fetch sessions: limited in number and size; sessions in use are not evicted; unknown ids and wrong epochs."""

from tailrace.doors.kafka.fetch_sessions import FetchSessions
from tailrace.model.faults import FetchSessionUnknown
from tailrace.model.ids import Id
from tailrace.model.limits import FETCH_SESSION_KEPT_S, FETCH_SESSION_PARTITIONS_MAX, FETCH_SESSIONS_MAX
from tailrace.ports.randomness import SystemRandom
from tailrace.wire.errors import Error
from tailrace.wire.hot_fetch import FetchHead, PartitionWanted, TopicWanted
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.metadata import MetadataRequest
from tests.unit.doors.kafka.handlers.records.test_hostile_fetches import fetch
from tests.unit.doors.kafka.served import Served, with_broker
from tests.unit.standing_clock import StandingClock


def opening(*topics: TopicWanted, number: int = 0, epoch: int = 0) -> FetchHead:
    return FetchHead(-1, 0, 0, 0, 0, number, epoch, list(topics), [], "")


def wanted(count: int, topic: str | Id = "t", begin: int = 0) -> TopicWanted:
    return TopicWanted(topic, [PartitionWanted(begin + number, -1, 0, 1) for number in range(count)])


def test_sessions_in_use_are_not_pushed_out_by_newcomers() -> None:
    clock = StandingClock()
    sessions = FetchSessions(SystemRandom(), clock)
    mine = sessions.session_for(opening(wanted(1)), by_id=False)
    assert mine is not None
    while len(sessions) < FETCH_SESSIONS_MAX:
        sessions.session_for(opening(wanted(1)), by_id=False)
    assert sessions.session_for(opening(wanted(1)), by_id=False) is None  # served without one
    assert sessions.session_for(opening(number=mine.id, epoch=1), by_id=False) is mine
    clock.now = FETCH_SESSION_KEPT_S + 1.0
    assert sessions.session_for(opening(number=mine.id, epoch=2), by_id=False) is mine
    assert sessions.session_for(opening(wanted(1)), by_id=False) is not None  # idle sessions are evicted
    assert len(sessions) == FETCH_SESSIONS_MAX
    assert sessions.session_for(opening(number=mine.id, epoch=3), by_id=False) is mine


def test_a_session_cannot_grow_for_ever() -> None:
    sessions = FetchSessions(SystemRandom(), StandingClock())
    grown = sessions.session_for(opening(wanted(1)), by_id=False)
    assert grown is not None
    step, epoch = 9_000, 1
    try:
        while True:
            sessions.session_for(opening(wanted(step, begin=epoch * step), number=grown.id, epoch=epoch), by_id=False)
            epoch += 1
    except FetchSessionUnknown:
        assert FETCH_SESSION_PARTITIONS_MAX - step < len(grown.partitions) <= FETCH_SESSION_PARTITIONS_MAX
    assert len(sessions) == 0
    assert sessions.session_for(opening(wanted(10_000)), by_id=False) is not None  # its room is free again


def test_names_too_long_for_a_topic_are_not_kept() -> None:
    sessions = FetchSessions(SystemRandom(), StandingClock())
    assert sessions.session_for(opening(wanted(1, "x" * 250)), by_id=False) is None
    assert sessions.session_for(opening(wanted(1, "x" * 249)), by_id=False) is not None


@with_broker()
async def test_an_unknown_session_and_a_wrong_epoch_get_their_errors(served: Served) -> None:
    await served.make_topic("t")
    opened = await served.call(fetch(0, session_id=0, session_epoch=0), 12)
    assert opened.session_id > 0
    for number, epoch, error in (
        (opened.session_id + 1, 1, Error.FETCH_SESSION_ID_NOT_FOUND),
        (opened.session_id, 9, Error.INVALID_FETCH_SESSION_EPOCH),
        (opened.session_id, -5, Error.INVALID_FETCH_SESSION_EPOCH),
        (-1, 2**31 - 1, Error.FETCH_SESSION_ID_NOT_FOUND),
    ):
        answer = await served.call(fetch(0, session_id=number, session_epoch=epoch), 12)
        assert (answer.error_code, answer.topics) == (error, ())
    assert (await served.call(MetadataRequest(topics=()), 9)).brokers


@with_broker()
async def test_a_session_goes_on_with_names_or_with_ids_as_it_began(served: Served) -> None:
    """Java's consumer opens a session with names while it lacks topic ids; a response has names or ids, not both."""
    topic_id = Id(await served.make_topic("t"))
    wanted = PartitionToFetch(partition=0, fetch_offset=0, partition_max_bytes=10**6)
    topics = (TopicToFetch(name="t", topic_id=topic_id, partitions=(wanted,)),)
    for first, then in ((12, 18), (18, 12)):
        opened = await served.call(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, session_epoch=0), first)
        assert opened.session_id
        again = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, session_id=opened.session_id, session_epoch=1)
        answer = await served.call(again, then)
        assert (answer.error_code, answer.topics) == (Error.FETCH_SESSION_TOPIC_ID_ERROR, ())
        assert (await served.call(again, first)).error_code == Error.FETCH_SESSION_ID_NOT_FOUND
