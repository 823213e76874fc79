"""The voters of a log that is being opened: from their files below the recovery point, from the batches above it.

A file below the point that cannot be read is made again from its batch. When that is gone, or bad, too, nobody can say
any more who votes: the log is damaged there.
"""

from collections.abc import Sequence

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import VOTERS_SUFFIX, named, offsets_named
from tailrace.log.recovery.found import VoterSets
from tailrace.log.recovery.segment_walk import walk
from tailrace.log.segment import Segment
from tailrace.log.state.voters import read_voters, write_voters
from tailrace.model.faults import CorruptBatch
from tailrace.ports.disk import Disk
from tailrace.records.control import VoterIds, VotersChange, read_control


class FoundVoters:
    def __init__(self, disk: Disk, folder: str, names: Sequence[str]) -> None:
        self._disk = disk
        self._folder = folder
        self._named = offsets_named(names, VOTERS_SUFFIX)
        self._target = 0
        self.sets: VoterSets = []

    def path_of(self, offset: int) -> str:
        return f"{self._folder}/{named(offset, VOTERS_SUFFIX)}"

    async def load(self, target: int, segments: Sequence[Segment]) -> int | None:
        """Know what was said below `target`; the offset of voters that nothing tells any more."""
        self._target = target
        for offset in self._named:
            if offset < target:
                try:
                    voters = read_voters(self._disk, self._folder, offset)
                except Unreadable:
                    again = _from_batch(segments, offset)
                    if again is None:
                        return offset
                    voters = again
                    await self._write(offset, voters)
                self.sets.append((offset, voters))
        return None

    def scanned(self, offset: int, batch: memoryview) -> str | None:
        """Take note of a control batch at the target or above; what is wrong with it."""
        try:
            said = read_control(batch)
        except CorruptBatch as fault:
            return str(fault)
        if isinstance(said, VotersChange):
            self.sets.append((offset, said.voters))
        return None

    async def settle(self) -> bool:
        """Make the files from the target on say what the batches do; whether names came or went."""
        scanned = [one for one in self.sets if one[0] >= self._target]
        right = [offset for offset, _ in scanned]
        wrong = [offset for offset in self._named if offset >= self._target and offset not in right]
        for offset in wrong:
            if self._disk.exists(self.path_of(offset)):
                self._disk.remove(self.path_of(offset))
        for offset, voters in scanned:
            await self._write(offset, voters)
        return bool(scanned or wrong)

    async def _write(self, offset: int, voters: VoterIds) -> None:
        file = write_voters(self._disk, self._folder, offset, voters)
        try:
            await file.sync()
        finally:
            file.close()


def _from_batch(segments: Sequence[Segment], offset: int) -> VoterIds | None:
    home = [segment for segment in segments if segment.base <= offset][-1:]
    for segment in home:
        for found in walk(segment.file, 0, segment.size, check=True):
            if found.header is not None and found.header.base_offset == offset and found.problem is None:
                said = read_control(found.data)
                return said.voters if isinstance(said, VotersChange) else None
    return None
