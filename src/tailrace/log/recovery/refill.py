"""Refilling: a log is discarded, and its replica fetches everything from the leader again.

This is done to a log that is damaged, and to one that fell too far behind a compacted one (ADR 0025). The second kind
is sound: its files are kept in the folder `aside` until the log is complete again.

To discard a log takes several steps, and to fetch it takes long; a crash may come at any time. The file `refilling` in
the log's folder records the state:

    emptying     all other files in the folder are being removed; the next open continues with that
    setting-aside   the same, but they are being moved into `aside`
    filling      the log is empty, or has what was fetched since

The file is durable before the first other file is removed, and stays until the log is complete again (`refilled`). So a
crash leaves either the damaged log, or one that is known to lack records that its replica has acknowledged: that
replica does not vote and does not count for the quorum, however healthy the log looks. The recovery point that was
recorded for the old log does not apply to the new one, which is marked as truncated to 0 (`truncation`).

The voters are kept: the leader's log may begin after the batch that set them, and a replica that knows no voter except
itself would elect itself. `refilling` lists them. When the log is complete and contains no voters of its own, they get
a `….voters` file just before the log start.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tailrace.log.compaction.clean_state import CleanState
from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import ASIDE_NAME, REFILLING_NAME
from tailrace.log.maintenance import CLOSED, DELETED
from tailrace.log.recovery import truncation
from tailrace.log.state.aborted_index import AbortedIndexes
from tailrace.log.state.producers import ProducerStates
from tailrace.log.state.voters import parse_voters, voter_lines, write_voters
from tailrace.log.writing import write_fault
from tailrace.model.faults import StorageFailed
from tailrace.ports.disk import Disk, make_lasting_dir, read_file, replace_file
from tailrace.records.control import VoterIds

if TYPE_CHECKING:
    from tailrace.log.log import Log

logger: Final = logging.getLogger(__name__)

VERSION: Final = 2
EMPTYING: Final = "emptying"
SETTING_ASIDE: Final = "setting-aside"
FILLING: Final = "filling"


async def start_over(log: "Log", *, keep_aside: bool) -> None:
    if log.failed is not None:
        raise log.failed
    if log.refusal in (CLOSED, DELETED):
        raise StorageFailed(f"{log.folder} is {log.refusal}")
    disk = log.ports.disk
    before, log.refusal = log.refusal, "being discarded"
    voters = log.voter_sets[-1][1] if log.voter_sets else log.voters_before
    # A log that was not complete is not worth keeping; the one that is aside since it was stays there.
    state = SETTING_ASIDE if keep_aside and not log.refilling else EMPTYING
    try:
        await make_lasting_dir(disk, log.folder)
        if state == SETTING_ASIDE:
            await _remove_aside(disk, log.folder)
        await _mark(disk, log.folder, state, voters)
    except OSError as error:
        log.refusal = before
        raise write_fault(log.folder, error) from error
    log.refilling = True
    log.voters_before = voters
    _reset(log)
    try:
        await _empty(disk, log.folder, voters, state)
    except OSError as error:
        log.take_offline(f"cannot remove the files of {log.folder}, the next start continues with that: {error}")
        raise write_fault(log.folder, error) from error
    log.refusal = None


def _reset(log: "Log") -> None:
    """Reset the log in memory. The epoch cache is emptied in place, because the Raft replica uses the same object."""
    log.syncer.abandon(OSError(f"{log.folder} is being discarded"))
    for segment in log.segments:
        segment.removed = True
        segment.file.close()
    log.segments.clear()
    log.start = log.end = log.durable = log.horizon = 0
    log.epochs.truncate_to(0)
    log.epochs.advance_start(0)
    log.producers = ProducerStates(log.producers.expiration_ms)
    log.aborted = AbortedIndexes()
    log.voter_sets.clear()
    log.clean = CleanState()
    log.damage = log.recovery_point = None
    log.recorded_offset = 0
    log.unsaved_cost = 0
    log.point_saved = log.stops_clean = log.writes_refused = False
    log.can_checkpoint = True
    log.truncated_at, log.truncation_covered = 0, False
    log.reset_syncer()


async def resume(disk: Disk, folder: str) -> VoterIds | None:
    """The voters of a log that is being refilled; None for any other log. Finishes an interrupted removal of files."""
    path = f"{folder}/{REFILLING_NAME}"
    if not disk.exists(path):
        await _remove_aside(disk, folder)
        return None
    voters: VoterIds = ()
    try:
        state, *lines = read_state(REFILLING_NAME, VERSION, read_file(disk, path))
        voters = parse_voters(lines)
    except (Unreadable, ValueError):
        state = EMPTYING  # everything is fetched again in any case
    if state != FILLING:
        await _empty(disk, folder, voters, state)
    return voters


async def _empty(disk: Disk, folder: str, voters: VoterIds, state: str) -> None:
    aside = f"{folder}/{ASIDE_NAME}"
    if state == SETTING_ASIDE:
        await make_lasting_dir(disk, aside)
    for name in disk.names(folder):
        if name in (REFILLING_NAME, ASIDE_NAME):
            continue
        if state == SETTING_ASIDE:
            disk.rename(f"{folder}/{name}", f"{aside}/{name}")
        else:
            disk.remove(f"{folder}/{name}")
            await asyncio.sleep(0)  # freeing gigabytes takes time
    if state == SETTING_ASIDE:
        await disk.sync_dir(aside)
    await truncation.store_mark(disk, folder, 0)  # also makes the removals durable, before `filling` is recorded
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
        raise write_fault(log.folder, error) from error
    log.refilling = False
    await _remove_aside(disk, log.folder)


async def _remove_aside(disk: Disk, folder: str) -> None:
    if not disk.exists(aside := f"{folder}/{ASIDE_NAME}"):
        return
    try:
        await disk.remove_dir_cold(aside)
    except OSError as error:
        logger.error("cannot remove %s, which is not needed any longer: %s", aside, error)


async def _keep_voters(log: "Log") -> None:
    """Unless the log has voters of its own, or begins at 0: then it has all the batches that ever set voters."""
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
