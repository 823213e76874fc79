"""Who votes, as far as the log says: remembered, so that opening a log need not read it all.

A control batch that names voters is rare, and may lie anywhere. Beside each stands a file `….voters`, named by its
offset, with a line for every voter: broker and directory. It is written before its batch and synced in the same round.

    00000000000000000123.voters      tailrace voters 1 / 1 4kXsk2g… / 2 6Xv9oa3… / crc32c …

Rules: below the recovery point the files are the truth, for nobody looks at the batches. Above it the batches are:
recovery makes the files say what it scanned, and removes those that no batch stands behind. So a file whose batch was
refused, or cut off, goes before another batch can take its offset. What retention removes takes no voters with it: of
those named below the start, the last are kept, since they are in force until others are named. A log that is thrown
away keeps its last voters, too (`refill`): nobody may name them again.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import VOTERS_SUFFIX, named
from tailrace.log.writing import not_taken, roll, write
from tailrace.model.ids import parse_id, show_id
from tailrace.ports.disk import Disk, File, read_file
from tailrace.records.control import VoterIds, VotersChange, read_control

if TYPE_CHECKING:
    from tailrace.log.log import Log

KIND: Final = "voters"
VERSION: Final = 1


def write_control(log: "Log", batch: memoryview, base: int, last: int, timestamp: int, now_ms: int) -> None:
    """Write a control batch, as `write` does, and remember the voters that it may name."""
    said = read_control(batch)
    if not isinstance(said, VotersChange):
        write(log, batch, base, last, timestamp, now_ms)
        return
    if not log.segments:
        roll(log, log.end)  # it makes the folder
    try:
        file = write_voters(log.ports.disk, log.folder, base, said.voters)
    except OSError as error:
        _take_back(log, base)
        raise not_taken(log, log.folder, error) from error
    log.syncer.files[file] = None
    log.syncer.folders[log.folder] = None
    try:
        write(log, batch, base, last, timestamp, now_ms)
    except BaseException:
        _take_back(log, base)
        raise
    log.voter_sets.append((base, said.voters))


def _take_back(log: "Log", offset: int) -> None:
    """A file without its batch would speak for whatever is written there next."""
    path = f"{log.folder}/{named(offset, VOTERS_SUFFIX)}"
    log.syncer.forget(path)
    try:
        if log.ports.disk.exists(path):
            log.ports.disk.remove(path)
    except OSError as error:
        log.close_for_good(f"{path} could not be removed after a failed write: {error}")


def forget_from(log: "Log", end: int) -> None:
    """The log ends at `end` now; the files are the caller's to remove."""
    while log.voter_sets and log.voter_sets[-1][0] >= end:
        log.voter_sets.pop()


def forget_below_start(log: "Log") -> None:
    """Of the voters named at the start or below it only the last are needed."""
    while len(log.voter_sets) > 1 and log.voter_sets[1][0] <= log.start:
        path = f"{log.folder}/{named(log.voter_sets[0][0], VOTERS_SUFFIX)}"
        log.syncer.forget(path)
        log.ports.disk.remove(path)
        del log.voter_sets[0]


def write_voters(disk: Disk, folder: str, offset: int, voters: VoterIds) -> File:
    """Write down who votes from `offset` on; the caller syncs file and folder."""
    file = disk.open(f"{folder}/{named(offset, VOTERS_SUFFIX)}")
    data = write_state(KIND, VERSION, voter_lines(voters))
    file.write(data, 0)
    file.truncate(len(data))
    return file


def read_voters(disk: Disk, folder: str, offset: int) -> VoterIds:
    """Who votes from `offset` on; `Unreadable` when the file does not say."""
    return voters_of(read_state(KIND, VERSION, read_file(disk, f"{folder}/{named(offset, VOTERS_SUFFIX)}")))


def voter_lines(voters: VoterIds) -> list[str]:
    return [f"{broker} {show_id(directory)}" for broker, directory in voters]


def voters_of(lines: Sequence[str]) -> VoterIds:
    try:
        rows = [line.split() for line in lines]
        return tuple((int(broker), parse_id(directory)) for broker, directory in rows)
    except ValueError as error:
        raise Unreadable(f"{KIND}: {error}") from error
