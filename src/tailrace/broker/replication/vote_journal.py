"""The vote journal: the current epoch of each partition on this broker, and the vote cast in it.

All partitions of a broker share one file of fixed-size entries, each with its own checksum, so that a batch of votes
costs one fsync. The last entry of a partition counts. An entry with a wrong checksum was being written when the power
failed, so that vote was never sent. The entries behind it still count: keeping a vote that was never sent does no harm,
while forgetting one that was sent could elect two leaders in one epoch. At start the file is rewritten with one entry
per partition if most of it is history.

A write that fails has no effect and may be retried. After a failed fsync the content of the disk is unknown, so nothing
is stored again until the broker restarts: partitions led here keep their leader, but this broker casts no votes.
"""

import errno
import logging
import struct
from collections.abc import Sequence
from typing import Final

from tailrace.model.ids import NO_EPOCH, BrokerId, Epoch, Id, TopicPartition
from tailrace.ports import Disk
from tailrace.ports.disk import read_file, replace_file
from tailrace.raft.replica import Vote, Voter
from tailrace.raft.voters import NO_VOTER
from tailrace.records.crc import crc32c

logger: Final = logging.getLogger(__name__)

ENTRY_LAYOUT: Final = struct.Struct(">16siii16s")
CHECKSUM_LAYOUT: Final = struct.Struct(">I")
ENTRY_BYTES: Final = ENTRY_LAYOUT.size + CHECKSUM_LAYOUT.size
HISTORY_KEPT_MAX_ENTRIES: Final = 4096
NO_VOTE: Final = Vote(epoch=NO_EPOCH, voter=NO_VOTER)


class VoteJournal:
    """Votes by partition; `store` returns when they are on disk."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._votes: dict[TopicPartition, Vote] = {}
        self._end = 0
        self.failed = False  # an fsync failed: nothing is stored until a restart

    async def load(self) -> None:
        fresh = not self._disk.exists(self._path)
        data = b"" if fresh else read_file(self._disk, self._path)
        entries = 0
        for at in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
            entry = data[at : at + ENTRY_BYTES - CHECKSUM_LAYOUT.size]
            (checksum,) = CHECKSUM_LAYOUT.unpack_from(data, at + ENTRY_LAYOUT.size)
            if crc32c(entry) != checksum:
                logger.warning("%s: skipping the entry at byte %d: checksum mismatch", self._path, at)
                continue
            topic_id, partition, epoch, broker, directory = ENTRY_LAYOUT.unpack(entry)
            voter = Voter(broker=BrokerId(broker), directory=Id(directory))
            key = TopicPartition(Id(topic_id), partition)
            vote = Vote(epoch=Epoch(epoch), voter=voter)
            if _may_follow(vote, self.last(key)):  # otherwise it is left over from a write that failed half way
                self._votes[key] = vote
            entries += 1
            self._end = at + ENTRY_BYTES
        if fresh or entries > len(self._votes) + HISTORY_KEPT_MAX_ENTRIES:
            await self._rewrite()
        self._file = self._disk.open(self._path)
        self._file.truncate(self._end)

    def last(self, partition: TopicPartition) -> Vote:
        """The highest epoch known to this broker, and its vote in it, if it has cast one."""
        return self._votes.get(partition, NO_VOTE)

    async def store(self, votes: Sequence[tuple[TopicPartition, Vote]]) -> None:
        """Store votes durably, all with one fsync. After an OSError none of them counts."""
        if self.failed:
            raise OSError(errno.EIO, "an earlier sync failed", self._path)
        data = b"".join(_entry(partition, vote) for partition, vote in votes)
        self._file.write(data, self._end)  # after a failure the next write overwrites what this one left
        self._end += len(data)
        for partition, vote in votes:
            assert _may_follow(vote, self.last(partition))
            self._votes[partition] = vote
        try:
            await self._file.sync()
        except OSError:
            self.failed = True
            logger.critical("%s: fsync failed; this broker casts no vote until it restarts", self._path)
            raise

    def forget(self, partitions: Sequence[TopicPartition]) -> None:
        """Drop the votes of deleted partitions; the next rewrite removes them from the file."""
        for partition in partitions:
            self._votes.pop(partition, None)

    def close(self) -> None:
        self._file.close()

    async def _rewrite(self) -> None:
        data = b"".join(_entry(partition, vote) for partition, vote in self._votes.items())
        await replace_file(self._disk, self._path, data)
        self._end = len(data)


def _may_follow(vote: Vote, last: Vote) -> bool:
    """Raft §5.2: one vote per epoch. The epoch alone may be stored before the vote in it is cast."""
    return vote.epoch > last.epoch or (vote.epoch == last.epoch and last.voter == NO_VOTER) or vote == last


def _entry(partition: TopicPartition, vote: Vote) -> bytes:
    entry = ENTRY_LAYOUT.pack(
        partition.topic_id, partition.partition, vote.epoch, vote.voter.broker, vote.voter.directory
    )
    return entry + CHECKSUM_LAYOUT.pack(crc32c(entry))
