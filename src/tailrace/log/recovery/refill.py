"""A log that is thrown away and filled anew, by fetching from a leader whose log is whole.

To throw it away takes several steps, and to fill it takes long: a crash may come at any of them. The file `refilling`
in its folder says how far one has come:

    emptying     whatever else is in the folder goes; who opens it goes on with that
    filling      the log is empty, or has what has come from its leader since

The file is on the disk before the first other one goes, and stays until the log is whole again (`refilled`). So a crash
leaves the damaged log, or one that is known to lack what its replica once vouched for: that replica neither votes nor
counts, however healthy the log looks. The recovery point that was recorded for the old log does not hold for the new
one, which is marked as cut at 0 (`cut_mark`).

Who votes is not thrown away: the leader's log may begin after the batch that named the voters, and a replica that knows
of none but itself would elect itself. The file says who they were; when the log is whole and nobody was named since,
they stand in a file of their own, just before its start.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.disk_faults import refused
from tailrace.log.file_names import REFILLING_NAME
from tailrace.log.recovery.truncation_mark import store_cut
from tailrace.log.state.aborted_index import AbortedIndexes
from tailrace.log.state.producers import ProducerStates
from tailrace.log.state.voters import voter_lines, voters_of, write_voters
from tailrace.ports.disk import Disk, make_lasting_dir, read_file, replace_file
from tailrace.records.control import VoterIds

if TYPE_CHECKING:
    from tailrace.log.log import Log

VERSION: Final = 2
EMPTYING: Final = "emptying"
FILLING: Final = "filling"


async def start_over(log: "Log") -> None:
    if log.failed is not None:
        raise log.failed
    disk = log.ports.disk
    before, log.refusal = log.refusal, "being emptied"
    voters = log.voter_sets[-1][1] if log.voter_sets else log.voters_before
    try:
        await make_lasting_dir(disk, log.folder)
        await _mark(disk, log.folder, EMPTYING, voters)
    except OSError as error:
        log.refusal = before
        raise refused(log.folder, error) from error
    log.refilling = True
    log.voters_before = voters
    _let_go(log)
    try:
        await _empty(disk, log.folder, voters)
    except OSError as error:
        log.close_for_good(f"{log.folder} could not be emptied, the next start goes on with it: {error}")
        raise refused(log.folder, error) from error
    log.refusal = None


def _let_go(log: "Log") -> None:
    """Know nothing any more of what was there. What holds the log's parts goes on holding them."""
    log.syncer.abandon(OSError(f"{log.folder} is emptied"))
    for segment in log.segments:
        segment.removed = True
        segment.file.close()
    log.segments.clear()
    log.start = log.end = log.durable = 0
    log.epochs.truncate_to(0)
    log.epochs.advance_start(0)
    log.producers = ProducerStates(log.producers.expiration_ms)
    log.aborted = AbortedIndexes()
    log.voter_sets.clear()
    log.damage = log.point = None
    log.recorded_offset = 0
    log.saved = log.settled = log.refusing = False
    log.known_whole = True
    log.cut_at, log.cut_covered = 0, False
    log.begin_syncing()


async def resume(disk: Disk, folder: str) -> VoterIds | None:
    """Whether a log is being filled anew, and who voted before; where it was still being emptied, it is empty
    afterwards."""
    path = f"{folder}/{REFILLING_NAME}"
    if not disk.exists(path):
        return None
    voters: VoterIds = ()
    try:
        state, *lines = read_state(REFILLING_NAME, VERSION, read_file(disk, path))
        voters = voters_of(lines)
    except (Unreadable, ValueError):
        state = EMPTYING  # what is there is to be fetched in any case
    if state != FILLING:
        await _empty(disk, folder, voters)
    return voters


async def _empty(disk: Disk, folder: str, voters: VoterIds) -> None:
    for name in disk.names(folder):
        if name != REFILLING_NAME:
            disk.remove(f"{folder}/{name}")
            await asyncio.sleep(0)  # to free gigabytes takes its time
    await store_cut(disk, folder, 0)  # and with its name, that all others are gone: before it is said so
    await _mark(disk, folder, FILLING, voters)


async def refilled(log: "Log") -> None:
    if not log.refilling:
        return
    disk = log.ports.disk
    try:
        await log.flush()
        await _keep_voters(log)
        disk.remove(f"{log.folder}/{REFILLING_NAME}")
        await disk.sync_dir(log.folder)
    except OSError as error:
        raise refused(log.folder, error) from error
    log.refilling = False


async def _keep_voters(log: "Log") -> None:
    """A log that has come back from its very beginning says by itself who votes."""
    if log.voters_before and not log.voter_sets and log.start > 0:
        file = write_voters(log.ports.disk, log.folder, log.start - 1, log.voters_before)
        try:
            await file.sync()
        finally:
            file.close()
        await log.ports.disk.sync_dir(log.folder)
        log.voter_sets.append((log.start - 1, log.voters_before))


async def _mark(disk: Disk, folder: str, state: str, voters: VoterIds) -> None:
    lines = [state, *voter_lines(voters)]
    await replace_file(disk, f"{folder}/{REFILLING_NAME}", write_state(REFILLING_NAME, VERSION, lines))
