"""One partition on this broker, as doors and coordinators see it: append, read, and wait for either.

Three offsets rule everything: `log.end`, `log.durable`, and the replica's high watermark. Whenever the high watermark
moves, waiting producers are answered in offset order and waiting readers are poked. Nobody reads past it.
"""

import logging
from collections.abc import Callable
from typing import Final

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.partitions.member_ports import MemberPorts
from tailrace.broker.partitions.offset_waiters import OffsetWaiters, WhenReached
from tailrace.broker.partitions.transaction_guards import Guard, Guards, require_part_of_transaction
from tailrace.log.log import Appended, Log, Read
from tailrace.log.state.transaction_markers import marker_is_due
from tailrace.model.faults import (
    Fault,
    FencedLeaderEpoch,
    InvalidTopicName,
    NotEnoughReplicas,
    NotLeader,
    OffsetNotAvailable,
    OutOfOrderSequence,
    StorageFailed,
    UnknownLeaderEpoch,
    Unverified,
)
from tailrace.model.ids import NOBODY, Epoch, TopicPartition
from tailrace.model.topics import INTERNAL_TOPICS
from tailrace.raft.events import Event, Resign
from tailrace.raft.leader_view import LeaderView
from tailrace.raft.replica import Replica, Role
from tailrace.raft.voters import majority
from tailrace.records.control import marker_batch
from tailrace.records.header import CONTROL_BIT, TRANSACTIONAL_BIT, check_batch

logger: Final = logging.getLogger(__name__)

ACKS_ALL: Final = -1
PIPELINE_MAX_S: Final = 3.0  # how long a producer's batches may still come, ahead of one that was refused
READABLE_ROLES: Final = (Role.FOLLOWER, Role.OBSERVER)
NOT_PLAIN: Final = CONTROL_BIT | TRANSACTIONAL_BIT


class Partition(QuorumMember):
    def __init__(self, name: str, key: TopicPartition, log: Log, replica: Replica, shell: MemberPorts) -> None:
        super().__init__(name, key, log, replica, shell)
        self.bytes_appended = 0  # in this life: lets who waits for so many bytes count instead of read
        self._waiting = OffsetWaiters()  # clients, for all that acks=all asks for
        self._committing = OffsetWaiters()  # brokers, for the high watermark
        self._watchers: dict[Callable[[], None], None] = {}  # readers at the high watermark
        self._refused_at = -PIPELINE_MAX_S  # when a batch may last have been refused that will be sent again
        self.guards = Guards()
        self.is_internal = name.rpartition("-")[0] in INTERNAL_TOPICS
        self.leader_is_gone = False  # it was there a moment ago, and was reset or resigned: an election is under way

    # Writing

    @property
    def opens_records(self) -> bool:
        """Whether appending opens batches, which takes long: the topic's settings are about single records."""
        return self.log.looks_at_records

    def append(self, batch: memoryview, acks: int, guard: Guard | None = None) -> Appended:
        """Append one batch as a client sent it; it is checked, stamped in place and written. Faults leave nothing.

        `guard` lets a transaction begin here; without one a transaction is refused."""
        try:
            appended = self._append(batch, acks, guard)
        except (NotLeader, NotEnoughReplicas, StorageFailed, Unverified):
            self._refused_at = self._now()
            raise
        except OutOfOrderSequence as fault:
            raise self._why_out_of_order(fault) from None
        if not appended.duplicate:
            self.bytes_appended += len(batch)
            self.progress()
        return appended

    def _append(self, batch: memoryview, acks: int, guard: Guard | None) -> Appended:
        leadership, log = self.replica.leadership, self.log
        if leadership is None or self.announcing or self.offline is not None:
            self._require_writable()
        if self.is_internal:
            raise InvalidTopicName(f"{self.name} is written by brokers only")
        header = check_batch(batch)
        if header.attributes & NOT_PLAIN:
            require_part_of_transaction(log.producers, header, guard, self.epoch)
        if acks == ACKS_ALL and log.settings.min_insync_replicas > 1:
            self._require_in_sync()
        if leadership is not None and leadership.successor is not None:
            raise self._not_leader("is handing it over")
        if header.base_sequence > 0 and log.producers.get(header.producer_id) is None and self._refused_lately():
            raise self._not_leader(f"may have refused what comes before sequence {header.base_sequence}")
        return log.append(batch, header, self.replica.epoch, self.ports.clock.wall_ms())

    async def write_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        *,
        transaction_version: int = 0,
    ) -> None:
        """End a producer's transaction here; done when that is committed. One that is repeated changes nothing."""
        self.require_leader()
        states = self.log.producers
        states.transactions.settle(self.high_watermark)
        if marker_is_due(states, producer_id, producer_epoch, coordinator_epoch, transaction_version):
            batch = marker_batch(
                committed=committed,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=self.ports.clock.wall_ms(),
            )
            self.append_own(batch)
        self.guards.invalidate(producer_id, committed)
        await self.committed()

    def _require_writable(self) -> None:
        """A leader may be written to before it may be read: its first batch, which announces it, commits the rest."""
        announced = self.announcing and self.log.epochs.last == self.epoch
        if self.replica.role is not Role.LEADER or (self.announcing and not announced) or self.offline is not None:
            raise self._why_not() or self._not_leader("does not lead it")

    def _why_out_of_order(self, fault: OutOfOrderSequence) -> Fault:
        """Producers send several batches at once. When the first was refused, here or by the leader before, and the
        next finds that nothing stands against it any more, it must be refused all the same: taken for a gap,
        librdkafka begins a new producer epoch, in which it sends again what other leaders have taken and not answered,
        and nobody could tell that from new."""
        return self._not_leader(f"may have refused what came before: {fault}") if self._refused_lately() else fault

    def _refused_lately(self) -> bool:
        return self._now() - self._refused_at < PIPELINE_MAX_S

    def _require_in_sync(self) -> None:
        wanted = self.log.settings.min_insync_replicas
        in_sync = len(self.replica.in_sync(self._now()))
        if in_sync < wanted:
            raise NotEnoughReplicas(
                f"{self.name}: {in_sync} of its replicas {'is' if in_sync == 1 else 'are'} in sync, "
                f"min.insync.replicas is {wanted}"
            )

    def append_own(self, batch: bytearray) -> Appended:
        """Append a batch of a coordinator's."""
        self.require_leader()
        if self.replica.hands_over:
            raise self._not_leader("is handing it over")
        return self.append_control(batch, self.ports.clock.wall_ms())

    @property
    def acknowledged(self) -> int:
        """Below this offset acks=all is answered: the high watermark, or less where more than a majority is asked."""
        wanted = self.log.settings.min_insync_replicas
        if wanted <= len(self.replica.voters) // 2 + 1:
            return self.replica.high_watermark
        return min(self.replica.high_watermark, self.replica.durable_on(wanted))

    def when_acknowledged(self, end: int, done: WhenReached) -> None:
        """Call `done(None)` once all that acks=all asks for is done up to `end`, or `done(fault)` when it cannot be."""
        if self.acknowledged >= end:
            done(None)
        elif (fault := self._why_not()) is not None:
            done(fault)
        else:
            self._waiting.add(end, done)

    async def committed(self) -> None:
        """Wait until a majority has all that is in the log now; raises the fault when it cannot be."""
        if self.high_watermark < self.log.end:
            if (fault := self._why_not()) is not None:
                raise fault
            await self._committing.until(self.log.end)

    async def begin_at(self, start: int) -> bool:
        """Records below `start` were deleted, everywhere; False: this replica is not there yet."""
        if start <= self.high_watermark:
            await self.log.advance_start(start)
        elif self.replica.voters == (self.me,) and start > self.log.end:  # where nothing forces records to disk
            logger.error(
                "%s: offsets %d to %d are lost; the log restarts behind them", self.name, self.log.end, start - 1
            )
            await self.log.truncate_fully_and_start_at(start)
            self.progress()
        else:
            return False
        return True

    def hears_quorum(self) -> bool:
        """Whether a majority is connected at this moment, and was heard of lately. Those whose connection is gone may
        have elected another in the next: only who hears a quorum may say what is, and what is not."""
        since = self._now() - self.replica.timing.check_quorum_s
        there = [session.broker for session in self.sessions if session.confirmed_at >= since]
        voters = self.replica.voters
        return sum(voter == self.me or voter.broker in there for voter in voters) >= majority(len(voters))

    # Reading

    @property
    def last_stable(self) -> int:
        """Readers of committed records stop here: what lies above may be part of a transaction that is not decided."""
        return self.log.last_stable(self.replica.high_watermark)

    def readable(self, *, committed: bool) -> int:
        """Nobody reads past this."""
        return self.last_stable if committed else self.replica.high_watermark

    def read(self, offset: int, max_bytes: int, *, committed: bool = False) -> Read | None:
        """Whole batches below what is readable, from the one that holds `offset`; None: it takes the disk."""
        return self.log.read(offset, max_bytes, self.readable(committed=committed))

    async def read_cold(self, offset: int, max_bytes: int, *, committed: bool = False) -> Read:
        return await self.log.read_cold(offset, max_bytes, self.readable(committed=committed))

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
        if self.replica.role is not Role.LEADER or self.announcing or self.offline is not None:
            raise self._why_not() or self._not_leader("does not lead it")

    def require_readable(self) -> None:
        """Whether a consumer may read here: from the leader, or from a follower that hears from it (KIP-392)."""
        following = self.replica.following
        if self.offline is not None or self.replica.role not in READABLE_ROLES or following is None:
            self.require_leader()
        elif following.given_up:
            raise self._not_leader("follows it, and hears nothing from its leader")

    def not_available(self, offset: int) -> OffsetNotAvailable | None:
        """Why a follower that has an offset in its log does not serve it yet; None: nothing stands against it."""
        if self.high_watermark < offset <= self.log.end and not self.leads:
            return OffsetNotAvailable(f"{self.name}: offset {offset} is not known to be committed here yet")
        return None

    def require_epoch(self, epoch: int) -> None:
        """Compare the leader epoch that a client believes in, -1 for none, with ours (KIP-320)."""
        if epoch < 0 or epoch == self.epoch:
            return
        if epoch < self.epoch:
            raise FencedLeaderEpoch(f"{self.name}: epoch {epoch} is over, the leader is in {self.epoch}")
        raise UnknownLeaderEpoch(f"{self.name}: epoch {epoch} is unknown, the leader is in {self.epoch}")

    def _why_not(self) -> Fault | None:
        """Why nothing can be committed here; None: it can."""
        if self.offline is not None:
            return StorageFailed(f"{self.name} is offline: {self.offline}")
        return None if self.replica.role is Role.LEADER else self._not_leader("does not lead it")

    def _not_leader(self, why: str) -> NotLeader:
        leader = self.leader
        hint, epoch = (NOBODY, Epoch(-1)) if leader in (None, self.me.broker) else (leader, self.epoch)
        return NotLeader(f"{self.name}: this broker {why}", leader=hint or NOBODY, epoch=epoch)

    # What the quorum decides

    def progress(self) -> None:
        super().progress()
        if self._waiting:
            self._answer_held()

    def step(self, event: Event, records: memoryview | None = None) -> None:
        super().step(event, records)
        if self._waiting:
            self._answer_held()

    def _answer_held(self) -> None:
        """Where more than a majority is asked for, an offset may be acknowledged long after it was committed."""
        if self.log.settings.min_insync_replicas > 1:
            self._waiting.reached(self.acknowledged)

    def _append_fetched(self, records: memoryview) -> None:
        super()._append_fetched(records)
        self.log.producers.transactions.settle(self.high_watermark)

    def _moved_on(self) -> None:
        super()._moved_on()
        if self._waiting:
            self._waiting.reached(self.acknowledged)
        if self._committing:
            self._committing.reached(self.high_watermark)
        if self._watchers:
            self._poke_watchers()

    def _look_up(self) -> None:
        super()._look_up()
        following = self.replica.following
        gone = following is not None and following.given_up and self._heard_lately(following)
        if gone != self.leader_is_gone:
            self.leader_is_gone = gone
            self.ports.leader_changed(self)

    def _heard_lately(self, following: LeaderView) -> bool:
        """A leader that fell silent may still be there for others; one that is gone a moment after it spoke is not."""
        return self._now() - following.heard_at < self.replica.timing.fetch_timeout_s

    def _turned(self) -> None:
        super()._turned()
        if self.replica.role is Role.LEADER and self.replica.voters != (self.me,):
            self._refused_at = self._now()  # whoever led before has refused since then
        self._poke_watchers()

    def _poke_watchers(self) -> None:
        for poke in list(self._watchers):
            poke()

    def _deposed(self) -> None:
        super()._deposed()
        self._fail_waiting(self._why_not() or self._not_leader("led it, and does not any more"))

    def resign(self, fault: Fault) -> None:
        """Lead no more: who waits is told so."""
        self.step(Resign())
        self._fail_waiting(fault)

    def _fail_waiting(self, fault: Fault) -> None:
        self._waiting.fail(fault)
        self._committing.fail(fault)
        self._poke_watchers()


def gone(name: str) -> StorageFailed:
    return StorageFailed(f"{name} is closing")
