"""One partition on this broker: its log, its Raft replica, and those who wait for either.

Three offsets rule everything: `log.end`, `log.durable`, and the replica's high watermark. Whenever the first two move,
`_progress` lets the replica decide about the third; when that moves, waiting producers are answered in offset order and
waiting readers are poked. Nobody reads past it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from tailrace.log.log import Appended, Log, Read
from tailrace.model.faults import (
    Fault,
    FencedLeaderEpoch,
    InvalidBatch,
    NotEnoughReplicas,
    NotLeader,
    StorageFailed,
    UnknownLeaderEpoch,
)
from tailrace.model.ids import BrokerId, Epoch, TopicPartition
from tailrace.ports import Clock
from tailrace.raft.replica import Campaign, Replica, Resign, Role, Vote, VoteStored
from tailrace.records.build import leader_change_batch
from tailrace.records.header import check_batch, control_bit, read_header, transactional_bit

log_events = logging.getLogger(__name__)

acks_all: Final = -1
not_for_clients: Final = control_bit | transactional_bit

WhenCommitted = Callable[[Fault | None], None]


class Partition:
    def __init__(self, name: str, key: TopicPartition, log: Log, replica: Replica, me: BrokerId, clock: Clock) -> None:
        self.name = name  # topic and number, for people
        self.key = key
        self.log = log
        self.replica = replica
        self._me = me
        self._clock = clock
        self.bytes_appended = 0  # in this life: lets who waits for so many bytes count instead of read
        self._waiting: deque[tuple[int, WhenCommitted]] = deque()  # by rising offset, but for duplicates, which wait
        self._watchers: dict[Callable[[], None], None] = {}  # readers at the high watermark
        self._announcing = False  # until it is committed readers would see an end that lies before what they have read
        self.on_leader_changed: Callable[[], None] = _nobody_listens
        log.on_durable = self._progress
        log.on_failed = self._storage_failed

    @property
    def epoch(self) -> Epoch:
        return self.replica.epoch

    @property
    def high_watermark(self) -> int:
        return self.replica.high_watermark

    @property
    def leads(self) -> bool:
        return self.replica.role is Role.LEADER and not self._announcing

    # Leading

    def campaign(self) -> Vote:
        """Stand for election; the vote counts once it is stored, which `lead` is told by being called."""
        effects = self.replica.step(Campaign())
        assert effects.store_vote is not None
        return effects.store_vote

    def lead(self, vote: Vote) -> None:
        """The vote is stored: lead from now on. `announce` comes next."""
        effects = self.replica.step(VoteStored(vote.epoch))
        self._announcing = effects.append_leader_change and self.log.refusal is None
        self.on_leader_changed()

    def announce(self) -> None:
        """Append the control batch of a new leader, if one is due; `StorageFailed` when it cannot be done now."""
        if self._announcing and self.log.epochs.last != self.epoch:
            now_ms = self._clock.wall_ms()
            batch = leader_change_batch(
                leader=self._me,
                voters=[self._me],
                granting=[self._me],
                base_offset=self.log.end,
                leader_epoch=self.epoch,
                timestamp=now_ms,
            )
            self._append(memoryview(batch), now_ms)

    def resign(self, fault: Fault) -> None:
        """Lead no more: who waits is told so."""
        self.replica.step(Resign())
        self.on_leader_changed()
        self._fail_waiting(fault)

    async def begin_at(self, start: int) -> None:
        """Records below `start` were deleted; those up to it may be lost, too, where nothing forces them to disk."""
        if start > self.log.end:
            log_events.error("%s: records %d to %d are lost", self.name, self.log.end, start - 1)
            await self.log.begin_anew(start)
            self._progress()
        else:
            await self.log.advance_start(start)

    # Writing

    def append(self, batch: memoryview, acks: int) -> Appended:
        """Append one batch as a client sent it; it is checked, stamped in place and written. Faults leave nothing."""
        self.require_leader()
        header = check_batch(batch)
        if header.attributes & not_for_clients:
            raise InvalidBatch("control and transactional batches are written by coordinators only")
        if acks == acks_all and self.log.settings.min_insync_replicas > 1:
            raise NotEnoughReplicas(
                f"{self.name}: 1 replica is in sync, min.insync.replicas is {self.log.settings.min_insync_replicas}"
            )
        appended = self.log.append(batch, header, self.replica.epoch, self._clock.wall_ms())
        if not appended.duplicate:
            self.bytes_appended += len(batch)
            self._progress()
        return appended

    def append_own(self, batch: bytearray) -> Appended:
        """Append a batch of a coordinator's."""
        self.require_leader()
        return self._append(memoryview(batch), self._clock.wall_ms())

    def _append(self, batch: memoryview, now_ms: int) -> Appended:
        appended = self.log.append(batch, read_header(batch), self.epoch, now_ms, internal=True)
        self._progress()
        return appended

    def when_committed(self, end: int, done: WhenCommitted) -> None:
        """Call `done(None)` once the high watermark reaches `end`, or `done(fault)` when it cannot any more."""
        if self.replica.high_watermark >= end:
            done(None)
        elif self.log.failed is not None:
            done(self.log.failed)
        else:
            self._waiting.append((end, done))

    async def committed(self) -> None:
        """Wait until all that is in the log now is committed; raises the fault when it cannot be."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.when_committed(self.log.end, partial(_settle, done))
        await done

    # Reading

    def read(self, offset: int, max_bytes: int) -> Read | None:
        """Whole batches below the high watermark, from the one that holds `offset`; None: it takes the disk."""
        return self.log.read(offset, max_bytes, self.replica.high_watermark)

    async def read_cold(self, offset: int, max_bytes: int) -> Read:
        return await self.log.read_cold(offset, max_bytes, self.replica.high_watermark)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` that wrote here, and the offset after its last batch; (-1, -1): unknown.

        A leader that has written nothing yet begins at the log's end: its epoch is known, though no batch has it."""
        written = self.log.epochs.last
        if not written < epoch <= self.epoch:
            return self.log.epochs.end_offset_for(epoch, self.log.end)
        return (epoch if written < 0 or epoch == self.epoch else written), self.log.end

    def watch(self, poke: Callable[[], None]) -> None:
        """Call `poke` whenever there may be more to read, until `unwatch`."""
        self._watchers[poke] = None

    def unwatch(self, poke: Callable[[], None]) -> None:
        self._watchers.pop(poke, None)

    # Checks that every door needs

    def require_leader(self) -> None:
        if self.replica.role is not Role.LEADER or self._announcing:
            if self.log.failed is not None:
                raise StorageFailed(f"{self.name} is offline: {self.log.failed}")
            raise NotLeader(f"{self.name}: this broker does not lead it")

    def require_epoch(self, epoch: int) -> None:
        """Compare the leader epoch that a client believes in, -1 for none, with ours (KIP-320)."""
        if epoch < 0 or epoch == self.epoch:
            return
        if epoch < self.epoch:
            raise FencedLeaderEpoch(f"{self.name}: epoch {epoch} is over, the leader is in {self.epoch}")
        raise UnknownLeaderEpoch(f"{self.name}: epoch {epoch} is unknown, the leader is in {self.epoch}")

    # What the log reports

    def _progress(self) -> None:
        if not self.replica.progress(self.log.end, self.log.durable):
            return
        if self._announcing:
            self._announcing = False
            self.on_leader_changed()
        waiting = self._waiting
        high_watermark = self.replica.high_watermark
        while waiting and waiting[0][0] <= high_watermark:
            waiting.popleft()[1](None)
        if self._watchers:
            for poke in list(self._watchers):
                poke()

    def _storage_failed(self) -> None:
        fault = self.log.failed
        assert fault is not None
        log_events.critical("%s is offline until the broker restarts: %s", self.name, fault)
        self.resign(fault)

    def _fail_waiting(self, fault: Fault) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, done in waiting:
            done(fault)
        for poke in list(self._watchers):
            poke()


def _nobody_listens() -> None:
    pass


def _settle(done: "asyncio.Future[None]", fault: Fault | None) -> None:
    if done.done():
        return
    if fault is None:
        done.set_result(None)
    else:
        done.set_exception(fault)


def gone(name: str) -> StorageFailed:
    return StorageFailed(f"{name} is closing")
