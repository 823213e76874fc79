"""The votes on the disks: the vote journal of every broker, read as it grows.

A candidate sends no message of a new epoch before its vote for itself is on disk. So every epoch that a replica is in
must be in some journal, under the topic id of that partition, as a vote of the journal's owner for itself. If it is
not, a message carried it too early; or, if a topic of the same name was deleted before, a late message of the deleted
topic reached the new one. And what was ever synced to a journal holds one vote per partition and epoch.
"""

from tailrace.broker.replication.vote_journal import CHECKSUM_LAYOUT, ENTRY_BYTES, ENTRY_LAYOUT
from tailrace.model.ids import Id, TopicPartition
from tailrace.raft.voters import NO_VOTER
from tailrace.records.crc import crc32c
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation
from tailrace.testing.simulation.file_content import FileContent
from tailrace.testing.simulation.storage import Storage

Epoch = tuple[TopicPartition, int]


class VoteJournalReader:
    """Reads the vote journal of one broker."""

    def __init__(self) -> None:
        self._votes: dict[Epoch, bytes] = {}  # the directory id of the voter that got each vote
        self.forget()

    def forget(self) -> None:
        """Start over, because the journal may have lost entries that were not synced, and that no message carried."""
        self._votes.clear()
        self._read = bytearray()

    def read_on(self, content: bytes | bytearray, owner: str) -> list[tuple[Epoch, bytes]]:
        """The votes that were added since the last call; a second vote in an epoch raises."""
        if not content.startswith(self._read):
            self.forget()  # the journal was rewritten, or what a full disk or a power cut left was overwritten
        added = []
        while len(self._read) + ENTRY_BYTES <= len(content):
            whole = bytes(content[len(self._read) : len(self._read) + ENTRY_BYTES])
            self._read += whole
            entry, checksum = whole[: ENTRY_LAYOUT.size], whole[ENTRY_LAYOUT.size :]
            if crc32c(entry).to_bytes(CHECKSUM_LAYOUT.size, "big") == checksum:
                topic_id, partition, epoch, _, directory = ENTRY_LAYOUT.unpack(entry)
                added.append(((TopicPartition(Id(topic_id), partition), epoch), directory))
                self._check_one_vote(*added[-1], owner)
        return added

    def _check_one_vote(self, epoch: Epoch, directory: bytes, owner: str) -> None:
        known = self._votes.get(epoch, NO_VOTER.directory)
        if known not in (NO_VOTER.directory, directory):
            raise InvariantViolated(Invariant.ONE_VOTE, f"{owner} voted twice for {epoch[0]} in epoch {epoch[1]}")
        self._votes[epoch] = directory


class VoteJournals:
    def __init__(self) -> None:
        self._journals: dict[str, VoteJournalReader] = {}  # by server
        self._campaigned: dict[Epoch, None] = {}  # epochs for which a candidate voted for itself

    def read(self, server: str, directory: Id, storage: Storage, path: str) -> None:
        """Read what was added to a server's journal; `directory` is the directory id of the server itself."""
        content = storage.tree.find(path)
        if isinstance(content, FileContent):
            self.read_on(server, directory, content.visible)

    def read_on(self, server: str, directory: Id, content: bytes | bytearray) -> None:
        for epoch, voted_for in self._journals.setdefault(server, VoteJournalReader()).read_on(content, server):
            if voted_for == directory:
                self._campaigned[epoch] = None

    def power_cut(self, server: str) -> None:
        self._journals.setdefault(server, VoteJournalReader()).forget()

    def check(self, seen: ReplicaObservation, *, recreated: bool = False) -> None:
        """Check a replica's epoch, after all journals were read; `recreated`: there was a topic of this name before."""
        if seen.stored and seen.epoch >= 0 and (seen.key, seen.epoch) not in self._campaigned:
            invariant = Invariant.LATE_VOTE if recreated else Invariant.STORED
            raise InvariantViolated(
                invariant, f"no vote journal has a candidate's vote for itself in epoch {seen.epoch}: {seen}"
            )
