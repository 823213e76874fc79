"""Votes as the disks have them: every broker's journal, read as it grows.

Nobody hears of an epoch before its candidate has a vote for itself on disk. So an epoch in which a partition is found
must stand in some journal, under that very partition's topic id, as a vote for the journal's owner. An epoch that does
not was heard of too early; or, where a topic of the same name is gone, it was brought by late news of that one.
And a journal holds one vote per partition and epoch, for all that was ever synced.
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
    """One broker's votes, as far as they were read."""

    def __init__(self) -> None:
        self._votes: dict[Epoch, bytes] = {}  # whom each went to, by the directory
        self.forget()

    def forget(self) -> None:
        """The power went, and with it what was not synced; nobody has heard of that."""
        self._votes.clear()
        self._read_to = 0
        self._last = b""

    def read_on(self, content: bytes | bytearray, owner: str) -> list[tuple[Epoch, bytes]]:
        """The votes that were added since; one that was given twice in an epoch is the end."""
        if content[self._read_to - len(self._last) : self._read_to] != self._last:
            self.forget()  # written anew, or over what a full disk or a power cut left
        added = []
        while self._read_to + ENTRY_BYTES <= len(content):
            self._last = bytes(content[self._read_to : self._read_to + ENTRY_BYTES])
            self._read_to += ENTRY_BYTES
            entry, checksum = self._last[: ENTRY_LAYOUT.size], self._last[ENTRY_LAYOUT.size :]
            if crc32c(entry).to_bytes(CHECKSUM_LAYOUT.size, "big") == checksum:
                topic_id, partition, epoch, _, directory = ENTRY_LAYOUT.unpack(entry)
                added.append(((TopicPartition(Id(topic_id), partition), epoch), directory))
                self._note(*added[-1], owner)
        return added

    def _note(self, epoch: Epoch, directory: bytes, owner: str) -> None:
        known = self._votes.get(epoch, NO_VOTER.directory)
        if known not in (NO_VOTER.directory, directory):
            raise InvariantViolated(Invariant.ONE_VOTE, f"{owner} votes twice for {epoch[0]} in epoch {epoch[1]}")
        self._votes[epoch] = directory


class VoteJournals:
    def __init__(self) -> None:
        self._journals: dict[str, VoteJournalReader] = {}
        self._begun: dict[Epoch, None] = {}  # by a candidate of that very partition

    def look(self, server: str, directory: Id, storage: Storage, path: str) -> None:
        """Read on in a server's journal; `directory` is what its own votes for itself name."""
        content = storage.tree.find(path)
        if isinstance(content, FileContent):
            self.read_on(server, directory, content.visible)

    def read_on(self, server: str, directory: Id, content: bytes | bytearray) -> None:
        for epoch, voted_for in self._journals.setdefault(server, VoteJournalReader()).read_on(content, server):
            if voted_for == directory:
                self._begun[epoch] = None

    def power_cut(self, server: str) -> None:
        self._journals.setdefault(server, VoteJournalReader()).forget()

    def check(self, seen: ReplicaObservation, *, recreated: bool = False) -> None:
        """All journals have been read by now. `recreated`: there was a topic of the same name before."""
        if seen.stored and seen.epoch >= 0 and (seen.key, seen.epoch) not in self._begun:
            invariant = Invariant.LATE_VOTE if recreated else Invariant.STORED
            raise InvariantViolated(
                invariant, f"nobody has stood for election in epoch {seen.epoch}, as the disks say: {seen}"
            )
