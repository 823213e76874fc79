"""One partition on this broker, as doors and coordinators use it: append, read, and wait for either.

Three offsets matter: `log.end`, `log.durable`, and the replica's high watermark. Whenever the high watermark moves,
waiting producers are answered in offset order and waiting readers are notified. Consumers cannot read past it.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

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
from tailrace.model.ids import NO_BROKER, BrokerId, Epoch, TopicPartition
from tailrace.model.topics import INTERNAL_TOPICS
from tailrace.raft.events import Resign
from tailrace.raft.replica import Replica, Role, Voter
from tailrace.raft.tombstones import raised, removable
from tailrace.raft.voters import majority
from tailrace.records.control import marker_batch
from tailrace.records.header import CONTROL_BIT, TRANSACTIONAL_BIT, check_batch

logger: Final = logging.getLogger(__name__)

ACKS_ALL: Final = -1
PIPELINE_MAX_S: Final = 3.0  # how long a producer's later batches may still arrive after one was refused
READABLE_ROLES: Final = (Role.FOLLOWER, Role.OBSERVER)
CONTROL_OR_TRANSACTIONAL: Final = CONTROL_BIT | TRANSACTIONAL_BIT


class PartitionEvents(Protocol):
    """What a partition reports to its broker."""

    def leader_changed(self, partition: "Partition") -> None:
        """The role, the epoch or the leader has changed, a new leader takes reads, the leader was lost or is back, or
        this replica is offline."""

    async def losing_log(self, partition: "Partition") -> None:
        """The replica is about to empty its log: note durably that it may not vote."""

    def became_active(self, partition: "Partition") -> None: ...

    def repaired(self, partition: "Partition") -> None: ...


class Partition:
    def __init__(
        self,
        name: str,
        key: TopicPartition,
        log: Log,
        replica: Replica,
        ports: MemberPorts,
        events: PartitionEvents,
    ) -> None:
        self.name = name  # topic-partition, for messages
        self.key = key
        self.log = log
        self.replica = replica
        self.member = QuorumMember(name, key, log, replica, ports, observer=self)
        self._clock = ports.clock
        self._events = events
        self.bytes_appended = 0  # since the start: a waiting Fetch counts new bytes by it without reading
        self._ack_waiters = OffsetWaiters()  # of clients, for acks=all
        self._commit_waiters = OffsetWaiters()  # of coordinators, for the high watermark
        self._watchers: dict[Callable[[], None], None] = {}  # readers at the high watermark
        self._refused_at = -PIPELINE_MAX_S  # when a batch that will be resent may last have been refused
        self.guards = Guards()
        self.is_internal = name.rpartition("-")[0] in INTERNAL_TOPICS

    @property
    def me(self) -> Voter:
        return self.replica.me

    @property
    def epoch(self) -> Epoch:
        return self.replica.epoch

    @property
    def high_watermark(self) -> int:
        return self.replica.high_watermark

    @property
    def leads(self) -> bool:
        return self.member.leads

    @property
    def leader(self) -> BrokerId | None:
        """The leader, as far as this replica knows."""
        return self.member.leader

    @property
    def offline(self) -> StorageFailed | None:
        """Why this replica is offline; None: it is not."""
        return self.member.offline

    # Writing

    @property
    def opens_records(self) -> bool:
        """Whether an append decodes batches, which takes long: topic settings apply to single records."""
        return self.log.looks_at_records

    def append(self, batch: memoryview, acks: int, guard: Guard | None = None, body: bytes | None = None) -> Appended:
        """Check a client's batch, set its offsets and epoch in place, write it. After a fault nothing was written,
        nor after `NeedsRecompression`.

        `guard` allows a transaction to begin here; without one a transactional batch is refused. `body`: its records
        decompressed, if it was recompressed."""
        try:
            appended = self._append(batch, acks, guard, body)
        except (NotLeader, NotEnoughReplicas, StorageFailed, Unverified):
            self._refused_at = self._clock.monotonic()
            raise
        except OutOfOrderSequence as fault:
            raise self._why_out_of_order(fault) from None
        if not appended.duplicate:
            self.bytes_appended += len(batch)
            self.member.progress()
        return appended

    def _append(self, batch: memoryview, acks: int, guard: Guard | None, body: bytes | None) -> Appended:
        leadership, log, member = self.replica.leadership, self.log, self.member
        if leadership is None or member.announcing or member.offline is not None:
            self._require_writable()
        if self.is_internal:
            raise InvalidTopicName(f"{self.name} is an internal topic, only brokers write to it")
        header = check_batch(batch)
        if header.attributes & CONTROL_OR_TRANSACTIONAL:
            require_part_of_transaction(log.producers, header, guard, self.epoch)
        if acks == ACKS_ALL and log.settings.min_insync_replicas > 1:
            self._require_in_sync()
        if leadership is not None and leadership.successor is not None:
            raise self._not_leader("is handing over leadership")
        if header.base_sequence > 0 and log.producers.get(header.producer_id) is None and self._refused_lately():
            raise self._not_leader(f"may have refused a batch before sequence {header.base_sequence}")
        return log.append(batch, header, self.replica.epoch, self._clock.wall_ms(), body=body)

    async def write_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        *,
        transaction_version: int = 0,
    ) -> None:
        """Write a producer's commit or abort marker; returns once it is committed. Repeating it changes nothing."""
        self.append_marker(
            producer_id, producer_epoch, coordinator_epoch, committed, transaction_version=transaction_version
        )
        await self.committed()

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        *,
        transaction_version: int = 0,
    ) -> None:
        """As `write_marker`; the caller waits for `committed`."""
        self.require_leader()
        states = self.log.producers
        states.transactions.settle(self.high_watermark)
        if marker_is_due(states, producer_id, producer_epoch, coordinator_epoch, transaction_version):
            batch = marker_batch(
                committed=committed,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=self._clock.wall_ms(),
            )
            self.append_own(batch)
        self.guards.invalidate(producer_id, committed)

    def _require_writable(self) -> None:
        """A new leader takes writes once its leader-change batch is in the log, and reads once that is committed."""
        member = self.member
        announced = member.announcing and self.log.epochs.last == self.epoch
        if self.replica.role is not Role.LEADER or (member.announcing and not announced) or member.offline is not None:
            raise self._commit_fault() or self._not_leader("is not the leader")

    def _why_out_of_order(self, fault: OutOfOrderSequence) -> Fault:
        """Producers have several batches in flight. When one was refused, here or by the previous leader, the next
        must be refused with a retriable fault as well, even if it could be appended by now. If it were answered with
        OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka would bump its producer epoch and resend batches that a previous
        leader has appended but not acknowledged; under the new epoch they could not be recognised as duplicates.

        A leader that was replaced without knowing it lacks the batches that the next one has taken."""
        if self._refused_lately():
            return self._not_leader(f"may have refused an earlier batch: {fault}")
        if not self.hears_quorum():
            return self._not_leader(f"has lost contact with the majority, and may lack an earlier batch: {fault}")
        return fault

    def _refused_lately(self) -> bool:
        return self._clock.monotonic() - self._refused_at < PIPELINE_MAX_S

    def _require_in_sync(self) -> None:
        wanted = self.log.settings.min_insync_replicas
        in_sync = len(self.replica.in_sync(self._clock.monotonic()))
        if in_sync < wanted:
            raise NotEnoughReplicas(f"{self.name}: ISR size is {in_sync}, min.insync.replicas is {wanted}")

    def append_own(self, batch: bytearray) -> Appended:
        """Append a batch that a coordinator of this broker wrote."""
        self.require_leader()
        if self.replica.hands_over:
            raise self._not_leader("is handing over leadership")
        return self.member.append_control(batch, self._clock.wall_ms())

    @property
    def acknowledged(self) -> int:
        """acks=all is answered below this: the high watermark, or less if min.insync.replicas exceeds a majority."""
        wanted = self.log.settings.min_insync_replicas
        if wanted <= len(self.replica.voters) // 2 + 1:
            return self.replica.high_watermark
        return min(self.replica.high_watermark, self.replica.durable_on(wanted))

    def when_acknowledged(self, end: int, done: WhenReached) -> None:
        """Call `done(None)` once acks=all is fulfilled up to `end`, or `done(fault)` when it cannot be."""
        if self.acknowledged >= end:
            done(None)
        elif (fault := self._commit_fault()) is not None:
            done(fault)
        else:
            self._ack_waiters.add(end, done)

    async def committed(self) -> None:
        """Wait until everything that is in the log now is committed; raises the fault if it cannot be."""
        if self.high_watermark < self.log.end:
            if (fault := self._commit_fault()) is not None:
                raise fault
            await self._commit_waiters.until(self.log.end)

    def when_committed(self, done: WhenReached) -> None:
        """As `committed`, with a callback: `done(None)`, or `done(fault)`."""
        if self.high_watermark >= self.log.end:
            done(None)
        elif (fault := self._commit_fault()) is not None:
            done(fault)
        else:
            self._commit_waiters.add(self.log.end, done)

    async def begin_at(self, start: int) -> bool:
        """Delete records below `start`, as the metadata says; False: this replica's high watermark is lower yet."""
        if start <= self.high_watermark:
            await self.log.advance_start(start)
        elif self.replica.voters == (self.me,) and start > self.log.end:  # possible without fsync
            logger.error(
                "%s: offsets %d to %d are lost; the log restarts behind them", self.name, self.log.end, start - 1
            )
            await self.log.truncate_fully_and_start_at(start)
            self.member.progress()
        else:
            return False
        return True

    def hears_quorum(self) -> bool:
        """Whether a majority is connected now and has fetched recently. Followers whose connection is lost may elect
        another leader at any moment, so only a leader that passes this check may answer reads of its state."""
        voters = self.replica.voters
        if voters == (self.me,):
            return True
        since = self._clock.monotonic() - self.replica.timing.check_quorum_s
        connected = [session.broker for session in self.member.sessions if session.confirmed_at >= since]
        return sum(voter == self.me or voter.broker in connected for voter in voters) >= majority(len(voters))

    # Compaction

    async def raise_horizon(self) -> None:
        """As the leader: raise the tombstone horizon as far as it may be raised now (ADR 0025)."""
        leadership, log, away_ms = self.replica.leadership, self.log, self.log.settings.delete_retention_ms
        if leadership is None or not self.leads:
            return
        covered = log.clean.covered_since(self._clock.wall_ms() - away_ms)
        horizon = raised(leadership, covered, self.high_watermark, self._clock.monotonic(), away_ms / 1000)
        if horizon > log.horizon:
            await log.raise_horizon(horizon)
            self.member.horizon_raised()

    def removable(self) -> int:
        """Tombstones and transaction markers below this may be removed now, as far as other replicas go."""
        leadership, log = self.replica.leadership, self.log
        if leadership is None:
            return log.horizon
        return removable(leadership, log.horizon, self._clock.monotonic(), log.settings.delete_retention_ms / 1000)

    # Reading

    @property
    def last_stable(self) -> int:
        """The last stable offset, where read_committed stops: what is above may be in a transaction still open."""
        return self.log.last_stable(self.replica.high_watermark)

    def readable(self, *, committed: bool) -> int:
        """The offset at which readers stop."""
        return self.last_stable if committed else self.replica.high_watermark

    def read(self, offset: int, max_bytes: int, *, committed: bool = False, skip_empty: bool = False) -> Read | None:
        """Whole readable batches from the one that contains `offset`; None: not in the page cache, use `read_cold`.

        With `skip_empty`, from the first one with records."""
        return self.log.read(offset, max_bytes, self.readable(committed=committed), skip_empty=skip_empty)

    async def read_cold(
        self, offset: int, max_bytes: int, *, committed: bool = False, skip_empty: bool = False
    ) -> Read:
        return await self.log.read_cold(offset, max_bytes, self.readable(committed=committed), skip_empty=skip_empty)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` with a batch here, and the offset after its last one; (-1, -1): unknown.

        The epoch of a leader that has written nothing yet counts as well: it begins at the log's end."""
        written = self.log.epochs.last
        if not written < epoch <= self.epoch:
            return self.log.epochs.end_offset_for(epoch, self.log.end)
        return (epoch if written < 0 or epoch == self.epoch else written), self.log.end

    def watch(self, notify: Callable[[], None]) -> None:
        """Call `notify` whenever there may be more to read, until `unwatch`."""
        self._watchers[notify] = None

    def unwatch(self, notify: Callable[[], None]) -> None:
        self._watchers.pop(notify, None)

    # Checks

    def require_leader(self) -> None:
        if not self.member.leads:
            raise self._commit_fault() or self._not_leader("is not the leader")

    def require_readable(self) -> None:
        """A consumer may fetch from the leader, or from a follower that is in contact with its leader (KIP-392)."""
        following = self.replica.following
        if self.offline is not None or self.replica.role not in READABLE_ROLES or following is None:
            self.require_leader()
        elif self.log.refilling and self.log.settings.is_compacted:  # its records below may be of very different ages
            raise self._not_leader("is fetching its whole log again")
        elif following.given_up:
            raise self._not_leader("is a follower that has lost contact with the leader")

    def not_available(self, offset: int) -> OffsetNotAvailable | None:
        """The fault if a follower has `offset` in its log but does not know it to be committed; else None."""
        if self.high_watermark < offset <= self.log.end and not self.leads:
            return OffsetNotAvailable(f"{self.name}: offset {offset} is not known to be committed here yet")
        return None

    def require_epoch(self, epoch: int) -> None:
        """Compare the leader epoch that a client sent, -1 for none, with ours (KIP-320)."""
        if epoch < 0 or epoch == self.epoch:
            return
        if epoch < self.epoch:
            raise FencedLeaderEpoch(f"{self.name}: leader epoch {epoch} is older than the current one, {self.epoch}")
        raise UnknownLeaderEpoch(f"{self.name}: leader epoch {epoch} is newer than the one known here, {self.epoch}")

    def _commit_fault(self) -> Fault | None:
        """The fault that prevents commits here; None: nothing does."""
        if self.offline is not None:
            return StorageFailed(f"{self.name} is offline: {self.offline}")
        return None if self.replica.role is Role.LEADER else self._not_leader("is not the leader")

    def _not_leader(self, why: str) -> NotLeader:
        leader = self.leader
        hint, epoch = (NO_BROKER, Epoch(-1)) if leader in (None, self.me.broker) else (leader, self.epoch)
        return NotLeader(f"{self.name}: this broker {why}", leader=hint or NO_BROKER, epoch=epoch)

    # Called by the quorum member

    def progressed(self) -> None:
        """If min.insync.replicas exceeds a majority, acks=all may be fulfilled long after the offset was committed."""
        if self._ack_waiters and self.log.settings.min_insync_replicas > 1:
            self._ack_waiters.reached(self.acknowledged)

    def high_watermark_moved(self) -> None:
        if self._ack_waiters:
            self._ack_waiters.reached(self.acknowledged)
        if self._commit_waiters:
            self._commit_waiters.reached(self.high_watermark)
        if self._watchers:
            self._notify_watchers()

    def role_changed(self) -> None:
        self._events.leader_changed(self)
        if self.replica.role is Role.LEADER and self.replica.voters != (self.me,):
            self._refused_at = self._clock.monotonic()  # the previous leader has refused batches since then
        self._notify_watchers()

    def leader_changed(self) -> None:
        self._events.leader_changed(self)

    async def losing_log(self) -> None:
        await self._events.losing_log(self)

    def became_active(self) -> None:
        self._events.became_active(self)

    def repaired(self) -> None:
        self._events.repaired(self)

    def deposed(self) -> None:
        self._fail_waiting(self._commit_fault() or self._not_leader("is no longer the leader"))

    def _notify_watchers(self) -> None:
        for notify in list(self._watchers):
            notify()

    def resign(self, fault: Fault) -> None:
        """Resign as leader, and fail all waiters with `fault`."""
        self.member.step(Resign())
        self._fail_waiting(fault)

    def _fail_waiting(self, fault: Fault) -> None:
        self._ack_waiters.fail(fault)
        self._commit_waiters.fail(fault)
        self._notify_watchers()


def closing_fault(name: str) -> StorageFailed:
    return StorageFailed(f"{name} is closing")
