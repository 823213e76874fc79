"""`TakingSession` against brokers that follow a script: what is known of a message when its accept fails."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tailrace.client.cluster import Retry
from tailrace.client.faults import NotAcknowledged, OutcomeUnknown, Unsupported
from tailrace.client.shares.message import Message, Outcome
from tailrace.client.taking_session import TakingSession
from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName, TopicPartition
from tailrace.testing.simulation import World
from tailrace.wire.errors import Error
from tailrace.wire.messages.leaders import LeaderIdAndEpoch
from tailrace.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from tailrace.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from tests.unit.client.misbehaving import PORT, TOPIC_ID
from tests.unit.client.simulated_client import SimulatedClient
from tests.unit.client.test_share_consumer import LIMITS, Scripted, acknowledged, fetched, said

PLACE = TopicPartition(TOPIC_ID, 0)
WANTED = (PLACE,)
SILENCE = object()


class Silent(Scripted):
    """`SILENCE` in the script: no answer."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = asyncio.Event()  # for a message

    def answer(self, key: int, request: Any, number: int, *, is_error: bool) -> Any:
        answer = super().answer(key, request, number, is_error=is_error)
        if isinstance(request, ShareFetchRequest):
            self.was_asked.set()
        if answer is SILENCE:
            self.wait_s = 2 * LIMITS.request_s
            return acknowledged()
        return answer


def play(work: Callable[[TakingSession, Silent], Awaitable[None]], *, version: int = 2) -> list[int]:
    """Returns the leaders that were named for partitions that had moved."""
    moved: list[int] = []

    def note(_: TopicPartition, leader: LeaderIdAndEpoch, __: object) -> None:
        moved.append(leader.leader_id)

    async def run(world: World) -> None:
        brokers = Silent()
        brokers.version = version
        await brokers.listen(world.machine("h1"), 1)
        client = SimulatedClient(world, "h1", LIMITS)

        async def take() -> None:
            session = TakingSession(
                client.cluster, Address("h1", PORT), "g", lambda one: PartitionName("t", one.partition), note
            )
            async with asyncio.timeout(60):
                await work(session, brokers)
                await session.close()
            client.cluster.close()

        await client.run(take())

    with World(1) as world:
        world.run(run(world))
    return moved


async def one(session: TakingSession, brokers: Silent, offset: int = 0) -> Message:
    brokers.script.append(fetched(offset))
    message = await session.take(WANTED)
    assert message is not None
    return message


def test_what_several_callers_want_and_decide_is_one_request() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        brokers.script.append(fetched(0, 1))
        messages = await asyncio.gather(*(session.take(WANTED) for _ in range(3)))
        assert [None if one is None else one.offset for one in messages] == [0, 1, None]
        (request,) = brokers.sent("ShareFetch")
        assert (request.max_records, request.share_acquire_mode, request.max_wait_ms) == (3, 1, 0)
        await asyncio.gather(*(session.decide(one, Outcome.ACCEPT) for one in messages if one is not None))
        (accepts,) = brokers.sent("ShareAcknowledge")
        assert said(accepts) == [(0, 0, (1,)), (1, 1, (1,))]
        assert session.is_idle

    play(work)


def test_an_accept_without_an_answer_has_an_unknown_outcome() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        message = await one(session, brokers)
        brokers.script.append(SILENCE)
        with pytest.raises(OutcomeUnknown, match="cannot accept offset 0"):
            await session.decide(message, Outcome.ACCEPT)
        first = brokers.sent("ShareFetch")[0]
        await one(session, brokers)
        again = brokers.sent("ShareFetch")[1]
        assert again.share_session_epoch == 0
        assert again.member_id != first.member_id  # so that the broker releases what the first has locked

    play(work)


def test_an_accept_that_could_not_be_stored_is_sent_again() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        message = await one(session, brokers)
        brokers.script += [acknowledged(Error.COORDINATOR_NOT_AVAILABLE), acknowledged(Error.REQUEST_TIMED_OUT)]
        await session.decide(message, Outcome.ACCEPT)
        assert [said(request) for request in brokers.sent("ShareAcknowledge")] == [[(0, 0, (1,))]] * 3

        message = await one(session, brokers, 1)
        brokers.script += [acknowledged(Error.REQUEST_TIMED_OUT), acknowledged(Error.INVALID_RECORD_STATE)]
        with pytest.raises(OutcomeUnknown):  # the first may have been stored after all
            await session.decide(message, Outcome.ACCEPT)

        message = await one(session, brokers, 2)
        brokers.script += [acknowledged(Error.REQUEST_TIMED_OUT)] * 1000
        with pytest.raises(OutcomeUnknown, match="REQUEST_TIMED_OUT"):
            await session.decide(message, Outcome.ACCEPT)
        brokers.script.clear()

    play(work)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Error.INVALID_RECORD_STATE, NotAcknowledged),
        (Error.NOT_LEADER_OR_FOLLOWER, OutcomeUnknown),  # it may have stored it as its last act
        (Error.UNKNOWN_SERVER_ERROR, OutcomeUnknown),
    ],
)
def test_what_an_error_says_of_an_accept(error: Error, expected: type[Exception]) -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        message = await one(session, brokers)
        brokers.script.append(acknowledged(error))
        with pytest.raises(expected, match=error.name):
            await session.decide(message, Outcome.ACCEPT)

    assert play(work) == ([-1] if error is Error.NOT_LEADER_OR_FOLLOWER else [])


def test_one_lock_that_has_ended_does_not_spoil_the_accepts_beside_it() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        brokers.script.append(fetched(0, 1))
        first, second = await asyncio.gather(session.take(WANTED), session.take(WANTED))
        assert first is not None
        assert second is not None
        refused = acknowledged(Error.INVALID_RECORD_STATE)
        brokers.script += [refused, acknowledged(), refused]
        results = await asyncio.gather(
            session.decide(first, Outcome.ACCEPT), session.decide(second, Outcome.ACCEPT), return_exceptions=True
        )
        assert results[0] is None
        assert isinstance(results[1], NotAcknowledged)
        assert len(brokers.sent("ShareAcknowledge")) == 3

    play(work)


def test_a_lost_session_is_opened_anew_and_its_locks_are_gone() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        message = await one(session, brokers)
        brokers.script += [ShareFetchResponse(error_code=Error.SHARE_SESSION_NOT_FOUND), fetched(1)]
        other = await session.take(WANTED)
        assert other is not None
        assert other.offset == 1
        with pytest.raises(NotAcknowledged, match="its lock has ended"):
            await session.decide(message, Outcome.ACCEPT)
        assert brokers.sent("ShareAcknowledge") == []
        brokers.script.append(ShareAcknowledgeResponse(error_code=Error.SHARE_SESSION_NOT_FOUND))
        with pytest.raises(NotAcknowledged):
            await session.decide(other, Outcome.ACCEPT)

    play(work)


def test_a_partition_that_moved_is_told_and_not_empty() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
        brokers.script.append(fetched(error=Error.NOT_LEADER_OR_FOLLOWER, current_leader=leader))
        with pytest.raises(Retry, match="cannot take from"):
            await session.take(WANTED)

    assert play(work) == [2]


def test_a_message_that_nobody_wants_any_more_is_released() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        brokers.script.append(fetched(0))
        call = asyncio.ensure_future(session.take(WANTED))
        await brokers.was_asked.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await session.close()
        (request,) = brokers.sent("ShareAcknowledge")[:1]
        assert said(request) == [(0, 0, (2,))]

    play(work)


def test_brokers_without_record_limits_are_refused() -> None:
    async def work(session: TakingSession, brokers: Silent) -> None:
        with pytest.raises(Unsupported, match="cannot limit the number of records"):
            await session.take(WANTED)

    play(work, version=1)
