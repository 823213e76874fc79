"""Observes all replicas of all running brokers, and checks the invariants.

It reads the nodes' own objects and the bytes on their disks between two callbacks, and changes nothing. A replica that
has not changed since the last observation costs one comparison.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tailrace.broker.partitions.partition import Partition
from tailrace.model.ids import Id, TopicPartition
from tailrace.raft.replica import Role
from tailrace.testing.scenarios.cluster.invariants.claims import Claims
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories
from tailrace.testing.scenarios.cluster.invariants.compacted_history import CompactedHistories
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.leadership import Leaders, ReplicaProgress, check_undamaged
from tailrace.testing.scenarios.cluster.invariants.log_entries import BEGINNING, FilePosition, entries
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation
from tailrace.testing.scenarios.cluster.invariants.share_partitions import SharePartitionObserver
from tailrace.testing.scenarios.cluster.invariants.vote_journals import VoteJournals
from tailrace.testing.scenarios.cluster.server import Server

OBSERVE_EVERY_SECONDS: Final = 0.01
COMPACTED_CHECKED_EVERY: Final = 20  # observations: a check reads the whole log
SHARES_OBSERVED_EVERY: Final = 5  # observations: theirs takes longer


class ObservedLog:
    """One log on one server, as it was last observed."""

    __slots__ = ("high_watermark", "log", "opening", "place", "state", "swaps")

    def __init__(self, log: object, opening: int) -> None:
        self.log = log
        self.opening = opening
        self.state: tuple[Any, ...] = ()
        self.swaps = 0  # by compaction
        self.high_watermark = 0
        self.place: FilePosition = BEGINNING  # up to here its batches were compared with the committed history


class ClusterObserver:
    def __init__(self, servers: Sequence[Server], now: Callable[[], float]) -> None:
        self._servers = servers
        self.leaders = Leaders()
        self.histories = CommittedHistories()
        self.claims = Claims(self.histories)
        self.journals = VoteJournals()
        self.damaged: dict[tuple[str, TopicPartition], None] = {}  # by a flipped bit: bytes may differ
        self.voter_changes = 0
        self._progress = ReplicaProgress()
        self.compacted = CompactedHistories()
        self._logs: dict[tuple[str, TopicPartition], ObservedLog] = {}
        self._voters: dict[TopicPartition, object] = {}
        self._directories: dict[str, Id] = {}  # the directory id of each server
        self._first: dict[str, TopicPartition] = {}  # the first partition of each name
        self.deleted: dict[Id, None] = {}  # topics
        self._openings = 0
        self._observations = 0
        self.shares = SharePartitionObserver(now)

    def observe_all(self) -> None:
        self._observations += 1
        self._read_journals()
        for server in self._servers:
            self._observe_server(server)
            if self._observations % SHARES_OBSERVED_EVERY == 0:
                self.shares.observe(server)

    def before_crash(self, server: Server) -> None:
        self._read_journals()
        self._observe_server(server)

    def after_power_loss(self, server: Server) -> None:
        self.journals.power_cut(server.name)

    def _read_journals(self) -> None:
        """Read the journals of crashed brokers, too: messages that they sent may still be in flight."""
        for server in self._servers:
            voter = None if server.startup is None else server.startup.voter
            if voter is not None:
                self._directories[server.name] = voter.directory
            if server.name in self._directories:
                directory = self._directories[server.name]
                self.journals.read(server.name, directory, server.machine.storage, server.votes_path)

    def _observe_server(self, server: Server) -> None:
        startup = server.startup
        if startup is None:
            return
        failed = startup.background.failed
        if failed.done():
            raise InvariantViolated(Invariant.ALIVE, f"{server.name}: {failed.exception()!r}") from failed.exception()
        if startup.hosted is not None:
            self.deleted.update(dict.fromkeys(startup.hosted.image.removed))
        for partition in partitions_of(server):
            self._observe_partition(server, partition)

    def _observe_partition(self, server: Server, partition: Partition) -> None:
        replica, log = partition.replica, partition.log
        observed = self._logs.get((server.name, partition.key))
        if observed is None or observed.log is not log:
            self._openings += 1
            observed = self._logs[server.name, partition.key] = ObservedLog(log, self._openings)
        if log.refilling and log.end < replica.high_watermark:
            return  # its log is being emptied: the broker serves nothing of it now
        if log.refilling and replica.high_watermark < observed.high_watermark:  # it was told to begin anew
            self._openings += 1
            observed = self._logs[server.name, partition.key] = ObservedLog(log, self._openings)
            self.compacted.begun_anew[server.name, partition.key] += 1
        state = (
            replica.epoch,
            replica.role,
            replica.high_watermark,
            log.end,
            replica.stored,
            replica.voters,
            log.swaps,
        )
        if state != observed.state:
            observed.state, observed.high_watermark = state, replica.high_watermark
            self._check(server, partition, observed)

    def _check(self, server: Server, partition: Partition, observed: ObservedLog) -> None:
        seen = observe(server, partition, observed.opening)
        if partition.offline is not None and not has_storage_failure(partition):
            raise InvariantViolated(Invariant.ALIVE, f"{seen} is offline: {partition.offline}")
        self._progress.check(seen)
        first = self._first.setdefault(partition.name, seen.key)
        self.journals.check(seen, recreated=first != seen.key)
        check_undamaged(seen)
        is_new_leader = self.leaders.check(seen)
        if seen.key.topic_id in self.deleted:
            return  # a restarted broker that has not replayed the deletion yet may open it empty, which is no loss
        if is_compacted(partition):
            self._check_compacted(server, partition, observed, seen, is_new_leader=is_new_leader)
            return
        history = self.histories.of(seen.key)
        if is_new_leader:
            history.check_leader(seen)
        if self._voters.setdefault(seen.key, seen.voters) != seen.voters and seen.leads:
            self._voters[seen.key] = seen.voters
            self.voter_changes += 1
        if seen.high_watermark > observed.place.offset:
            self._compare(server, partition, observed, seen)

    def _compare(self, server: Server, partition: Partition, observed: ObservedLog, seen: ReplicaObservation) -> None:
        """Compare what was committed since the last observation with the history that all replicas share."""
        history, damaged = self.histories.of(seen.key), (server.name, seen.key) in self.damaged
        for entry, place in entries(server.machine.storage, partition.log, observed.place, seen.high_watermark):
            if damaged and history.at(entry.base) != entry:
                return  # the bit that was flipped here; the comparison at the end of the run covers this log
            history.add(seen, (entry,))
            observed.place = place
        self.claims.settle(seen.key)

    def _check_compacted(
        self,
        server: Server,
        partition: Partition,
        observed: ObservedLog,
        seen: ReplicaObservation,
        *,
        is_new_leader: bool,
    ) -> None:
        history, storage, log = self.compacted.of(seen.key), server.machine.storage, partition.log
        if is_new_leader and seen.end < history.end:
            raise InvariantViolated(Invariant.PREFIX, f"committed up to {history.end}, a new leader has less: {seen}")
        if log.refusal is not None:
            return  # being emptied or truncated, or damaged
        if seen.high_watermark > history.end:
            history.learn(storage, log, seen.high_watermark)
        if log.swaps != observed.swaps or is_new_leader or self._observations % COMPACTED_CHECKED_EVERY == 0:
            self.compacted.swaps += log.swaps - observed.swaps
            observed.swaps = log.swaps
            if not log.swapping and (server.name, seen.key) not in self.damaged:
                history.check(storage, partition, seen)

    def compare_whole_log(self, server: Server, partition: Partition) -> None:
        """Compare a replica's log with the committed history from its start."""
        if is_compacted(partition):
            seen = observe(server, partition, 0)
            self.compacted.of(seen.key).check(server.machine.storage, partition, seen)
            return
        observed = self._logs[server.name, partition.key]
        observed.place = BEGINNING
        self._compare(server, partition, observed, observe(server, partition, observed.opening))


def partitions_of(server: Server) -> Sequence[Partition]:
    """The partitions that the broker has opened; while it starts, those it has opened so far."""
    return [] if server.startup is None else server.startup.partitions()


def is_compacted(partition: Partition) -> bool:
    """Whether this replica's log may be compacted, so that it need not have the same bytes as others."""
    return partition.log.settings.is_compacted and not partition.is_internal


def has_storage_failure(partition: Partition) -> bool:
    return partition.log.failed is not None or partition.log.refusal is not None


def observe(server: Server, partition: Partition, opening: int) -> ReplicaObservation:
    replica, log = partition.replica, partition.log
    return ReplicaObservation(
        server=server.name,
        opening=opening,
        key=partition.key,
        voter=replica.me,
        voters=replica.voters,
        epoch=replica.epoch,
        stored=replica.stored,
        leads=replica.role is Role.LEADER,
        high_watermark=replica.high_watermark,
        committed_epoch=log.epochs.epoch_at(replica.high_watermark - 1),
        start=log.start,
        end=log.end,
        damaged=log.damage is not None,
    )
