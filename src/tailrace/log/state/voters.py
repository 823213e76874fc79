"""The voter sets that a log contains (KIP-853), kept in files so that opening a log need not read all of it.

A control batch that sets voters is rare, and may be anywhere in the log. For each there is a file `….voters`, named by
the batch's offset, with one line per voter: broker id and directory id. It is written before its batch and fsynced in
the same round.

    00000000000000000123.voters      tailrace voters 1 / 1 4kXsk2g… / 2 6Xv9oa3… / crc32c …

Rules:

- Below the recovery point the files are the truth, because a start does not read those batches. A file there that is
  unreadable is rebuilt from its batch; when the batch is gone or bad, too, the voters are unknown and the log is
  damaged at that offset.
- Above the recovery point the batches are the truth: recovery writes the files that the scanned batches call for, and
  removes the others. So the file of a batch that was refused or truncated is gone before another batch can get its
  offset.
- Retention does not remove the voters in force: of the sets at the log start or below, the last is kept. A log that is
  discarded keeps its last voters, too (`refill`), since no later batch may set them again.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import VOTERS_SUFFIX, file_name, offsets_named
from tailrace.log.segment import Segment
from tailrace.log.segment_walk import walk
from tailrace.log.writing import refuse, roll, write
from tailrace.model.faults import CorruptBatch
from tailrace.model.ids import parse_id, show_id
from tailrace.ports.disk import Disk, File, read_file
from tailrace.records.control import VoterIds, VotersChange, read_control

if TYPE_CHECKING:
    from tailrace.log.log import Log

KIND: Final = "voters"
VERSION: Final = 1
VoterSets = list[tuple[int, VoterIds]]  # by ascending offsets of the batches that set them


# In a log that is open


def write_control(log: "Log", batch: memoryview, base: int, last: int, timestamp: int, now_ms: int) -> None:
    """Write a control batch, as `write` does; if it sets voters, with their file."""
    control = read_control(batch)
    if not isinstance(control, VotersChange):
        write(log, batch, base, last, timestamp, now_ms)
        return
    if not log.segments:
        roll(log, log.end)  # makes the folder
    try:
        file = write_voters(log.ports.disk, log.folder, base, control.voters)
    except OSError as error:
        _undo(log, base)
        raise refuse(log, log.folder, error) from error
    log.syncer.files[file] = None
    log.syncer.folders[log.folder] = None
    try:
        write(log, batch, base, last, timestamp, now_ms)
    except BaseException:
        _undo(log, base)
        raise
    log.voter_sets.append((base, control.voters))


def _undo(log: "Log", offset: int) -> None:
    """Remove a file without a batch: it would count for the batch that is written at its offset next."""
    path = f"{log.folder}/{file_name(offset, VOTERS_SUFFIX)}"
    log.syncer.forget(path)
    try:
        if log.ports.disk.exists(path):
            log.ports.disk.remove(path)
    except OSError as error:
        log.take_offline(f"cannot remove {path} after a failed write: {error}")


def truncate_to(log: "Log", end: int) -> None:
    """Drop the voter sets at `end` or later; the caller removes the files."""
    while log.voter_sets and log.voter_sets[-1][0] >= end:
        log.voter_sets.pop()


def remove_below_start(log: "Log") -> None:
    """Remove all voter sets at the log start or below, except the last."""
    while len(log.voter_sets) > 1 and log.voter_sets[1][0] <= log.start:
        path = f"{log.folder}/{file_name(log.voter_sets[0][0], VOTERS_SUFFIX)}"
        log.syncer.forget(path)
        log.ports.disk.remove(path)
        del log.voter_sets[0]


# In a log that is being opened


class VoterRecovery:
    def __init__(self, disk: Disk, folder: str, names: Sequence[str]) -> None:
        self._disk = disk
        self._folder = folder
        self._files = offsets_named(names, VOTERS_SUFFIX)
        self._target = 0  # the recovery point
        self.sets: VoterSets = []

    def path_of(self, offset: int) -> str:
        return f"{self._folder}/{file_name(offset, VOTERS_SUFFIX)}"

    async def load(self, target: int, segments: Sequence[Segment]) -> int | None:
        """Load the voter sets below `target`; returns the offset of one that neither its file nor its batch gives."""
        self._target = target
        for offset in self._files:
            if offset < target:
                try:
                    voters = read_voters(self._disk, self._folder, offset)
                except Unreadable:
                    rebuilt = _voters_in_batch(segments, offset)
                    if rebuilt is None:
                        return offset
                    voters = rebuilt
                    await self._write(offset, voters)
                self.sets.append((offset, voters))
        return None

    def scanned(self, offset: int, batch: memoryview) -> str | None:
        """Take in a control batch at the target or above; returns what is wrong with it, if anything."""
        try:
            control = read_control(batch)
        except CorruptBatch as fault:
            return str(fault)
        if isinstance(control, VotersChange):
            self.sets.append((offset, control.voters))
        return None

    async def rewrite_files(self) -> bool:
        """Bring the files from the target on in line with the scanned batches; returns whether any name changed."""
        scanned = [(offset, voters) for offset, voters in self.sets if offset >= self._target]
        right = [offset for offset, _ in scanned]
        wrong = [offset for offset in self._files if offset >= self._target and offset not in right]
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


def _voters_in_batch(segments: Sequence[Segment], offset: int) -> VoterIds | None:
    for segment in [segment for segment in segments if segment.base <= offset][-1:]:
        for batch in walk(segment.file, 0, segment.size, check=True):
            if batch.header is not None and batch.header.base_offset == offset and batch.problem is None:
                control = read_control(batch.data)
                return control.voters if isinstance(control, VotersChange) else None
    return None


# Files


def write_voters(disk: Disk, folder: str, offset: int, voters: VoterIds) -> File:
    """Write the voters from `offset` on to their file; the caller fsyncs file and folder."""
    file = disk.open(f"{folder}/{file_name(offset, VOTERS_SUFFIX)}")
    data = write_state(KIND, VERSION, voter_lines(voters))
    file.write(data, 0)
    file.truncate(len(data))
    return file


def read_voters(disk: Disk, folder: str, offset: int) -> VoterIds:
    """The voters from `offset` on; raises `Unreadable` when the file is torn or altered."""
    return parse_voters(read_state(KIND, VERSION, read_file(disk, f"{folder}/{file_name(offset, VOTERS_SUFFIX)}")))


def voter_lines(voters: VoterIds) -> list[str]:
    return [f"{broker} {show_id(directory)}" for broker, directory in voters]


def parse_voters(lines: Sequence[str]) -> VoterIds:
    try:
        rows = [line.split() for line in lines]
        return tuple((int(broker), parse_id(directory)) for broker, directory in rows)
    except ValueError as error:
        raise Unreadable(f"{KIND}: {error}") from error
