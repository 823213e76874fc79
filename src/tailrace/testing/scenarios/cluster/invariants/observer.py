"""Looks at all replicas of all brokers that run, and feeds the invariants.

It reads the nodes' own objects and the bytes on their disks, between two events, and changes nothing. What has not
moved since the last look costs one comparison.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tailrace.broker.partitions.partition import Partition
from tailrace.model.ids import Id, TopicPartition
from tailrace.raft.replica import Role
from tailrace.testing.scenarios.cluster.invariants.claims import Claims
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.leadership import Leaders, ReplicaProgress, check_undamaged
from tailrace.testing.scenarios.cluster.invariants.log_entries import BEGINNING, FilePosition, entries
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation
from tailrace.testing.scenarios.cluster.invariants.vote_journals import VoteJournals
from tailrace.testing.scenarios.cluster.server import Server

LOOK_EVERY_SECONDS: Final = 0.01


class ObservedLog:
    """One log on one machine, as it was at the last look."""

    __slots__ = ("life", "log", "place", "state")

    def __init__(self, log: object, life: int) -> None:
        self.log = log
        self.life = life
        self.state: tuple[Any, ...] = ()
        self.place: FilePosition = BEGINNING  # up to here it was compared


class ClusterObserver:
    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = servers
        self.leaders = Leaders()
        self.histories = CommittedHistories()
        self.claims = Claims(self.histories)
        self.journals = VoteJournals()
        self.damaged: dict[tuple[str, TopicPartition], None] = {}  # where we flipped bits: bytes may differ there
        self.voter_changes = 0
        self._marks = ReplicaProgress()
        self._watched: dict[tuple[str, TopicPartition], ObservedLog] = {}
        self._voters: dict[TopicPartition, object] = {}
        self._directories: dict[str, Id] = {}
        self._first: dict[str, TopicPartition] = {}  # the first partition of each name
        self._deleted: dict[Id, None] = {}  # topics, for good
        self._lives = 0

    def look(self) -> None:
        self._read_journals()
        for server in self._servers:
            self._look_at(server)

    def dies(self, server: Server) -> None:
        self._read_journals()
        self._look_at(server)

    def lost_power(self, server: Server) -> None:
        self.journals.power_cut(server.name)

    def _read_journals(self) -> None:
        """Of those that are dead, too: what they said before may be under way."""
        for server in self._servers:
            voter = getattr(server.node, "voter", None)
            if voter is not None:
                self._directories[server.name] = voter.directory
            if server.name in self._directories:
                directory = self._directories[server.name]
                self.journals.look(server.name, directory, server.machine.storage, server.votes_path)

    def _look_at(self, server: Server) -> None:
        node = server.node
        if node is None:
            return
        if node.failed.done():
            raise InvariantViolated(
                Invariant.ALIVE, f"{server.name}: {node.failed.exception()!r}"
            ) from node.failed.exception()
        if getattr(node, "hosted", None) is not None:
            self._deleted.update(dict.fromkeys(node.hosted.image.removed))
        for partition in partitions_of(server):
            self._see(server, partition)

    def _see(self, server: Server, partition: Partition) -> None:
        replica, log = partition.replica, partition.log
        watched = self._watched.get((server.name, partition.key))
        if watched is None or watched.log is not log:
            self._lives += 1
            watched = self._watched[server.name, partition.key] = ObservedLog(log, self._lives)
        state = (replica.epoch, replica.role, replica.high_watermark, log.end, replica.stored, replica.voters)
        if state != watched.state:
            watched.state = state
            self._check(server, partition, watched)

    def _check(self, server: Server, partition: Partition, watched: ObservedLog) -> None:
        seen = observe(server, partition, watched.life)
        if partition.offline is not None and log_is_fine(partition):
            raise InvariantViolated(Invariant.ALIVE, f"{seen} is offline: {partition.offline}")
        self._marks.seen(seen)
        first = self._first.setdefault(partition.name, seen.key)
        self.journals.check(seen, recreated=first != seen.key)
        check_undamaged(seen)
        newly_leads = self.leaders.seen(seen)
        if seen.key.topic_id in self._deleted:
            return  # who restarts may not know of it yet, and begin with nothing; that is no loss
        history = self.histories.of(seen.key)
        if newly_leads:
            history.check_leader(seen)
        if self._voters.setdefault(seen.key, seen.voters) != seen.voters and seen.leads:
            self._voters[seen.key] = seen.voters
            self.voter_changes += 1
        if seen.high_watermark > watched.place.offset:
            self._compare(server, partition, watched, seen)

    def _compare(self, server: Server, partition: Partition, watched: ObservedLog, seen: ReplicaObservation) -> None:
        """Hold what was committed since the last look against the history that all replicas share."""
        history, damaged = self.histories.of(seen.key), (server.name, seen.key) in self.damaged
        for entry, place in entries(server.machine.storage, partition.log, watched.place, seen.high_watermark):
            if damaged and history.at(entry.base) != entry:
                return  # it is known to be bad, and found again at the end
            history.take(seen, (entry,))
            watched.place = place
        self.claims.settle(seen.key)

    def look_again(self, server: Server, partition: Partition) -> None:
        """Compare a replica's whole log anew."""
        watched = self._watched[server.name, partition.key]
        watched.place = BEGINNING
        self._compare(server, partition, watched, observe(server, partition, watched.life))


def partitions_of(server: Server) -> Iterator[Partition]:
    """Those that the node has opened; while it starts, as far as it is."""
    node = server.node
    metadata, hosted = getattr(node, "metadata", None), getattr(node, "hosted", None)
    if metadata is not None:
        yield metadata
    if hosted is not None:
        yield from hosted.all()


def log_is_fine(partition: Partition) -> bool:
    return partition.log.failed is None and partition.log.refusal is None


def observe(server: Server, partition: Partition, life: int) -> ReplicaObservation:
    replica, log = partition.replica, partition.log
    return ReplicaObservation(
        server=server.name,
        life=life,
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
