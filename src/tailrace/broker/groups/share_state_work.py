"""What share groups need of other brokers: their partitions initialized by the leaders, their share state deleted.

The machine says what there is to do for a group, and records what has been done (`groups/share/initializing.py`). One
task for each such group carries it out, attempt by attempt with a growing delay, until nothing is left or leadership
of the group's partition is lost; the next leader continues.

The group's settings decide where it begins to read, and the leaders' metadata may lag. So each attempt first asks the
controller where the metadata log ends, and leaders wait until they have applied it up to there: settings that were
changed before a member joined are in force.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from tailrace.broker.background import Spawn
from tailrace.groups.groups import Groups
from tailrace.groups.share.initializing import ShareStateWork
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault, TimedOut
from tailrace.model.ids import Id, TopicPartition

logger: Final = logging.getLogger(__name__)

PARTITIONS_PER_ATTEMPT_MAX: Final = 500
ATTEMPT_MAX_S: Final = 10.0
RETRY_MIN_S: Final = 0.1
RECORDED_AFTER_S: Final = 0.05  # partitions that are initialized within this time share a record


class ShareStateCalls(NamedTuple):
    """How share state is initialized and deleted. Both return when it is durable, and may be called again."""

    metadata_end: Callable[[], Awaitable[int]]  # of the committed metadata log, as the controller knows it
    # Takes group, topic id, partition, state epoch, start offset (-1: by the group's reset policy) and metadata end.
    initialize: Callable[[str, Id, int, int, int, int], Awaitable[None]]
    delete: Callable[[str, Sequence[TopicPartition]], Awaitable[None]]


class Act(Protocol):
    """`PartitionCoordinator.act`."""

    async def __call__(self, handler: Callable[[Groups, GroupTurn], Any], /) -> Any: ...


class ShareStateWorker:
    """Works for the groups of one partition of `__consumer_offsets`."""

    def __init__(
        self,
        act: Act,
        leads: Callable[[], bool],
        calls: ShareStateCalls,
        spawn: Spawn,
        retry_max_s: float,
    ) -> None:
        self._act = act
        self._leads = leads
        self._calls = calls
        self._spawn = spawn
        self._retry_max_s = retry_max_s
        self._working: dict[str, asyncio.Event] = {}  # groups with a task; set: there may be new work for it
        self._ended: dict[str, asyncio.Future[None]] = {}  # by group: the end of the attempt
        self.faults: dict[str, dict[TopicPartition, Fault]] = {}  # of the last attempt, by group

    def start(self, group_id: str) -> None:
        """There is work to do for a group."""
        if group_id in self._working:
            self._working[group_id].set()
        else:
            self._working[group_id] = asyncio.Event()
            self._spawn(self._work(group_id, self._working[group_id]))

    def next_end(self, group_id: str) -> "asyncio.Future[None]":
        """Done at the end of the attempt that is under way, or of the next one."""
        return self._ended.setdefault(group_id, asyncio.get_running_loop().create_future())

    async def _work(self, group_id: str, has_new: asyncio.Event) -> None:
        delay_s = RETRY_MIN_S
        while self._leads():
            has_new.clear()
            try:
                work: ShareStateWork | None = await self._act(partial(_next_work, group_id))
                if work is None and not has_new.is_set():
                    break
                if work is None or await self._attempt(group_id, work):
                    delay_s = RETRY_MIN_S
                    continue
            except Fault as fault:
                logger.info("share group %s: recording the state of its partitions failed: %s", group_id, fault)
            finally:
                self._end_attempt(group_id)
            with suppress(TimeoutError):  # new work is not kept waiting
                async with asyncio.timeout(delay_s):
                    await has_new.wait()
            delay_s = min(2 * delay_s, self._retry_max_s)
        del self._working[group_id]
        self.faults.pop(group_id, None)
        self._end_attempt(group_id)

    def _end_attempt(self, group_id: str) -> None:
        ended = self._ended.pop(group_id, None)
        if ended is not None and not ended.done():
            ended.set_result(None)

    async def _attempt(self, group_id: str, work: ShareStateWork) -> bool:
        """Carry out the work, and record what has succeeded; returns whether all has."""
        faults = self.faults[group_id] = {}
        if work.delete or not work.initialize:
            fault = await _fault_of(self._calls.delete(group_id, work.delete)) if work.delete else None
            if fault is None:
                await self._act(partial(_deleted, group_id, work.delete))
            else:
                faults |= dict.fromkeys(work.delete, fault)
        some = dict(list(work.initialize.items())[:PARTITIONS_PER_ATTEMPT_MAX])
        faults |= await self._initialize(group_id, work.state_epoch, some)
        if faults:
            place, fault = next(iter(faults.items()))
            logger.warning(
                "share group %s: %d of %d partitions could not be initialized or deleted, retrying: %s-%d: %s",
                group_id,
                len(faults),
                len(some) + len(work.delete),
                work.names[place.topic_id],
                place.partition,
                fault,
            )
        return not faults

    async def _initialize(
        self, group_id: str, state_epoch: int, starts: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Fault]:
        """Partitions are recorded as they become ready: one without a leader does not hold up the others."""
        if not starts:
            return {}
        try:
            metadata_end = await self._calls.metadata_end()
        except Fault as fault:
            return dict.fromkeys(starts, fault.with_traceback(None))
        faults: dict[TopicPartition, Fault] = {}
        calls = {
            one: asyncio.ensure_future(
                _fault_of(self._calls.initialize(group_id, *one, state_epoch, start, metadata_end))
            )
            for one, start in starts.items()
        }
        # `return_exceptions`: with it, calls that are cancelled leave no exception that nobody retrieves
        all_calls = asyncio.gather(*calls.values(), return_exceptions=True)
        try:
            while calls:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RECORDED_AFTER_S):
                        await asyncio.shield(all_calls)
                results = {one: call.result() for one, call in calls.items() if call.done()}
                calls = {one: call for one, call in calls.items() if one not in results}
                done = {one: starts[one] for one, fault in results.items() if fault is None}
                faults |= {one: fault for one, fault in results.items() if fault is not None}
                if done:
                    await self._act(partial(_initialized, group_id, done))
        finally:
            for call in calls.values():
                call.cancel()
        return faults


async def _fault_of(call: Awaitable[None]) -> Fault | None:
    try:
        async with asyncio.timeout(ATTEMPT_MAX_S):
            await call
    except Fault as fault:
        return fault.with_traceback(None)
    except TimeoutError:
        return TimedOut(f"no answer within {ATTEMPT_MAX_S} s")
    return None


def _next_work(group_id: str, machine: Groups, turn: GroupTurn) -> ShareStateWork | None:
    return machine.share_state_work(group_id, turn)


def _initialized(group_id: str, done: Mapping[TopicPartition, int], machine: Groups, turn: GroupTurn) -> None:
    machine.share_state_initialized(group_id, done, turn)


def _deleted(group_id: str, gone: Sequence[TopicPartition], machine: Groups, turn: GroupTurn) -> None:
    machine.share_state_deleted(group_id, gone, turn)
