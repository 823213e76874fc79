"""Calls to the share coordinators, here or on another broker: read and write what is stored of share partitions.

A call goes to the leader of the partition of `__share_group_state` that the share partition's key hashes to. For each
such partition one request to another broker is under way at a time; it carries all calls that have gathered since the
one before, and they are appended as one batch there. Leaders move, so a call that finds no coordinator is repeated
after a backoff, to the leader at that time, until `RETRIED_FOR_S` are over. Any call may be carried out twice: see
`queues.share_states`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from tailrace.broker.background import BackgroundTasks
from tailrace.broker.control.controller_calls import CallPeer
from tailrace.broker.peers import Unreachable
from tailrace.broker.queues.state_coordinator import ShareCoordinator
from tailrace.broker.queues.state_requests import CallKind, Outcome, StateCall, from_result, to_wire
from tailrace.model.faults import (
    CoordinatorUnavailable,
    Fault,
    FencedLeaderEpoch,
    UnknownTopicId,
)
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.model.limits import SHARE_STATE_BATCHES_PER_CALL_MAX, SHARE_STATES_PER_CALL_MAX
from tailrace.ports import Clock
from tailrace.queues.state import ANY_METADATA, ShareKey, ShareState, StateBatch
from tailrace.wire.messages.peers.call_share_coordinator import CallShareCoordinator, CallShareCoordinatorAnswer

RETRIED_FOR_S: Final = 10.0
ANSWERED_WITHIN_S: Final = 5.0
BACKOFF_MIN_S: Final = 0.02
BACKOFF_MAX_S: Final = 0.5
FINAL: Final = (FencedLeaderEpoch, UnknownTopicId)  # clients retry on these; here they are the result


class Place(NamedTuple):
    """A partition of the state topic, and its leader."""

    broker: BrokerId
    partition: int


class Waiting(NamedTuple):
    call: StateCall
    answered: "asyncio.Future[Outcome]"


class ShareStates:
    def __init__(
        self,
        coordinator: ShareCoordinator,
        me: BrokerId,
        call_peer: CallPeer,
        clock: Clock,
        background: BackgroundTasks,
    ) -> None:
        self._coordinator = coordinator
        self._me = me
        self._call_peer = call_peer
        self._clock = clock
        self._background = background
        self._waiting: dict[Place, list[Waiting]] = {}  # a key exists while `_serve` sends to it

    async def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, metadata_end: int = ANY_METADATA
    ) -> None:
        """Begin at an offset; what was stored with an earlier state epoch is forgotten. Does nothing if it was
        initialized with this state epoch already."""
        await self._call(
            StateCall(CallKind.INITIALIZE, key, state_epoch=state_epoch, start=start_offset, metadata_end=metadata_end)
        )

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        """The state, for a new leader of the topic partition; leaders of earlier epochs are fenced from now on.
        `InvalidRequest` if it was never initialized."""
        found = await self._call(StateCall(CallKind.READ, key, leader_epoch=leader_epoch))
        assert found is not None
        return found

    async def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Add batches, which must ascend without overlap, and move the start; returns when that is committed."""
        await self._call(
            StateCall(CallKind.WRITE, key, state_epoch, leader_epoch, start_offset, complete_count, batches)
        )

    async def delete(self, key: ShareKey) -> None:
        await self._call(StateCall(CallKind.DELETE, key))

    async def delete_all(self, group: str, partitions: Sequence[TopicPartition]) -> None:
        """Delete what is stored of these partitions for a group; raises a fault if some of it could not be."""
        await asyncio.gather(*(self.delete(ShareKey(group, *one)) for one in partitions))

    async def summary(self, key: ShareKey) -> ShareState | None:
        """The state without its batches; None if it was never initialized."""
        return await self._call(StateCall(CallKind.SUMMARY, key))

    # Inside

    async def _call(self, call: StateCall) -> ShareState | None:
        deadline = self._clock.monotonic() + RETRIED_FOR_S
        delay_s = BACKOFF_MIN_S
        while True:
            try:
                return await self._attempt(call)
            except Fault as fault:
                if not fault.retry or isinstance(fault, FINAL):
                    raise
                if self._clock.monotonic() + delay_s > deadline:
                    raise CoordinatorUnavailable(f"share coordinator of {call.key}: {fault}") from fault
            await asyncio.sleep(delay_s)
            delay_s = min(BACKOFF_MAX_S, 2 * delay_s)

    async def _attempt(self, call: StateCall) -> ShareState | None:
        place = Place(*await self._coordinator.place(call.key))
        try:
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                outcome = await (self._coordinator.call(call) if place.broker == self._me else self._send(place, call))
        except TimeoutError:
            raise CoordinatorUnavailable(
                f"broker {place.broker} did not answer within {ANSWERED_WITHIN_S:g} s"
            ) from None
        if isinstance(outcome, Fault):
            raise outcome
        return outcome

    async def _send(self, place: Place, call: StateCall) -> Outcome:
        waiting = Waiting(call, asyncio.get_running_loop().create_future())
        if place in self._waiting:
            self._waiting[place].append(waiting)
        else:
            self._waiting[place] = [waiting]
            self._background.spawn(self._serve(place))
        return await waiting.answered

    async def _serve(self, place: Place) -> None:
        """Send the calls that wait for one partition, until there are none."""
        while waiting := [one for one in self._waiting[place] if not one.answered.done()]:
            count = _portion(waiting)
            some, self._waiting[place] = waiting[:count], waiting[count:]
            for one, outcome in zip(some, await self._ask(place, [one.call for one in some]), strict=True):
                if not one.answered.done():
                    one.answered.set_result(outcome)
        del self._waiting[place]

    async def _ask(self, place: Place, calls: Sequence[StateCall]) -> Sequence[Outcome]:
        request = CallShareCoordinator(calls=tuple(map(to_wire, calls)))
        fault: Fault | None
        try:
            answer: CallShareCoordinatorAnswer = await self._call_peer(place.broker, request, ANSWERED_WITHIN_S)
            if not answer.error_code and len(answer.results) == len(calls):
                return [from_result(one) for one in answer.results]
            fault = CoordinatorUnavailable(f"broker {place.broker} refused the call: {answer.error_message}")
        except Unreachable as error:
            fault = CoordinatorUnavailable(f"broker {place.broker} is unreachable: {error}")
        return [fault] * len(calls)


def _portion(waiting: Sequence[Waiting]) -> int:
    """How many of the calls fit into one request."""
    batches = 0
    for count, one in enumerate(waiting[:SHARE_STATES_PER_CALL_MAX]):
        batches += len(one.call.batches)
        if count and batches > SHARE_STATE_BATCHES_PER_CALL_MAX:
            return count
    return min(len(waiting), SHARE_STATES_PER_CALL_MAX)
