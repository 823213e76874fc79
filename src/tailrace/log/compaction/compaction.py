"""One compaction pass over a log.

Two rounds over the chosen segments, in slices that a cleaner in a worker process looks at (`cleaner`): the first
*surveys* the dirty part (which record of each key is the last), the second *cleans* everything from the log start to
the end of what was surveyed. When the map of keys is full, the survey ends early, and a later pass goes on from there.

The clean batches are written to a new segment, which takes in as many old segments as fit into `segment.bytes`, and
replaces them (`swap`). Segments are replaced in ascending order, each durably before the next: a tombstone must not go
before the values that it deletes, nor a transaction's marker before its records.

The log is in use meanwhile. Its maintenance lock is held only while segments are replaced; if any of them was removed,
truncated or has become active by then, the pass is given up, and nothing of it stays. Whatever was replaced before
stays: every prefix of a pass is a correctly compacted log.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

from tailrace.log.compaction.clean_state import store_clean_state
from tailrace.log.compaction.new_segment import NewSegment
from tailrace.log.compaction.segment_choice import Choice
from tailrace.log.compaction.swap import begin_swap, discard_cleaned, end_swap, is_recorded, replace_segments
from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.log.index.sparse import RELATIVE_OFFSET_MAX
from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import Aborted
from tailrace.log.state.aborted_index_files import aborted_between
from tailrace.model.faults import StorageFailed
from tailrace.model.frozen import frozen
from tailrace.model.limits import BATCH_HEADER_BYTES, COMPACTION_SLICE_BYTES
from tailrace.ports.offload import Session
from tailrace.records.header import PREFIX_BYTES, read_header

if TYPE_CHECKING:
    from tailrace.log.log import Log

logger: Final = logging.getLogger(__name__)

ALL: Final = 2**63 - 1
Throttle = Callable[[int], Awaitable[None]]  # called with the number of bytes that were read or written


class Abandoned(Exception):
    """The log has changed so that this pass cannot go on; the next one may."""


@frozen
class Compacted:
    """What a pass has done."""

    upto: int  # everything below is compacted now
    bytes_before: int
    bytes_after: int
    full: bool  # whether the map of keys was full, so that the next pass goes on


async def compact(
    log: "Log", choice: Choice, session: Session, throttle: Throttle, removable: Callable[[], int]
) -> Compacted:
    """Compact the chosen segments; raises `Abandoned`, `WorkerLost`, `OSError` or `StorageFailed`.

    `removable`: tombstones and markers below may be removed; if it falls meanwhile, the pass is given up.

    `OSError` with ENOSPC: the disk is full, and the log is as it was, except for segments that were replaced before.
    """
    upto, full = await _survey(log, choice, session, throttle)
    ends = [segment.base for segment in choice.segments[1:]] + [choice.end]
    if upto <= choice.dirty_from:
        raise Abandoned(f"the batch at offset {upto} has more keys than log.cleaner.dedupe.buffer.size has room for")
    segments = [(segment, end) for segment, end in zip(choice.segments, ends, strict=True) if segment.base < upto]
    before = sum(segment.size for segment, _ in segments)
    active = log.producers.items()
    keep_last = {producer_id: producer.sent[-1].base_offset for producer_id, producer in active if producer.sent}
    keep_epochs = {producer_id: producer.epoch for producer_id, producer in active if not producer.sent}
    kept_since = log.ports.clock.wall_ms() - log.settings.delete_retention_ms
    horizon = min(removable(), log.horizon, log.clean.covered_since(kept_since))  # consumers must see tombstones, too
    cleaning = _Cleaning(log, session, throttle, (keep_last, keep_epochs), upto, horizon, removable)
    try:
        while segments:
            segments = await cleaning.replace_some(segments)
    except BaseException:
        if log.refusal is None and not log.swapping:
            discard_cleaned(log.ports.disk, log.folder)
        raise
    async with log.maintenance_lock:
        log.clean = log.clean.after_pass(upto, log.ports.clock.wall_ms())
        await store_clean_state(log.ports.disk, log.folder, log.clean)
    return Compacted(upto=upto, bytes_before=before, bytes_after=cleaning.written, full=full)


async def _survey(log: "Log", choice: Choice, session: Session, throttle: Throttle) -> tuple[int, bool]:
    """Survey the dirty segments; returns where the survey ended, and whether because the map is full."""
    for segment in choice.segments:
        async for data, base, end in slices(segment, choice.dirty_from):
            aborted = await _aborted(log, base, end)
            surveyed = await session.call("survey", data, aborted)
            await throttle(len(data))
            if surveyed.full:
                return surveyed.through, True
    return choice.end, False


class _Cleaning:
    def __init__(
        self,
        log: "Log",
        session: Session,
        throttle: Throttle,
        keep: tuple[dict[int, int], dict[int, int]],
        upto: int,
        horizon: int,
        removable: Callable[[], int],
    ) -> None:
        self._log = log
        self._session = session
        self._throttle = throttle
        self._keep_last, self._keep_epochs = keep  # what is left of each active producer
        self._upto = upto  # what follows was not surveyed, and stays as it is
        self._horizon = horizon  # tombstones and markers below go
        self._removable = removable
        self.written = 0

    async def replace_some(self, segments: list[tuple[Segment, int]]) -> list[tuple[Segment, int]]:
        """Replace the first segments by one; returns the others."""
        log = self._log
        base, taken = segments[0][0].base, 0
        sizes = [segment.size for segment, _ in segments]
        fresh = NewSegment(log.ports.disk, log.folder, base, log.settings.index_interval_bytes)
        try:
            for segment, end in segments:
                if taken and (
                    fresh.size + segment.size > log.settings.segment_bytes or end - 1 - base > RELATIVE_OFFSET_MAX
                ):
                    break
                await self._clean(segment, fresh)
                taken += 1
            await self._finish(fresh)
            end = segments[taken - 1][1]
            if fresh.end != end:
                raise Abandoned(f"the compacted segment would end at offset {fresh.end} instead of {end}")
            kept = await self._kept_aborted(base, end, fresh)
            await fresh.finish(kept)
        finally:
            fresh.close()
        await self._replace(segments[:taken], sizes[:taken], fresh)
        self.written += fresh.size
        return segments[taken:]

    async def _clean(self, segment: Segment, fresh: NewSegment) -> None:
        async for data, base, end in slices(segment, before=self._upto):
            aborted = await _aborted(self._log, base, end)
            cleaned = await self._session.call(
                "clean",
                data,
                aborted,
                horizon=self._horizon,
                keep_last=self._keep_last,
                keep_epochs=self._keep_epochs,
            )
            for offset, reason in cleaned.unreadable:
                logger.warning(
                    "%s: the batch at offset %d cannot be compacted and stays as it is: %s",
                    segment.path_of(SEGMENT_SUFFIX),
                    offset,
                    reason,
                )
            fresh.removed_markers.update((marker, None) for _, marker in cleaned.removed_markers)
            fresh.add(cleaned.data)
            await self._throttle(len(data) + len(cleaned.data))

        async for data, _, _ in slices(segment, self._upto):
            await self._finish(fresh)
            fresh.add(data)
            await self._throttle(2 * len(data))

    async def _finish(self, fresh: NewSegment) -> None:
        """Add what the cleaner still holds back: a run of removed batches that might have gone on."""
        finished = await self._session.call("finish")
        fresh.add(finished.data)
        await self._throttle(len(finished.data))

    async def _kept_aborted(self, base: int, end: int, fresh: NewSegment) -> list[Aborted]:
        """The aborted transactions whose markers lie between `base` and `end`, and stay."""
        return [
            one
            for one in await aborted_between(self._log, base, end)
            if base <= one.last_offset < end and one.last_offset not in fresh.removed_markers
        ]

    async def _replace(self, old: list[tuple[Segment, int]], sizes: list[int], fresh: NewSegment) -> None:
        log, disk = self._log, self._log.ports.disk
        segments = [segment for segment, _ in old]
        bases = [segment.base for segment in segments]
        async with log.maintenance_lock:
            first = next((at for at, segment in enumerate(log.segments) if segment is segments[0]), -1)
            unchanged = first >= 0 and log.segments[first : first + len(old)] == segments
            if not unchanged or first + len(old) >= len(log.segments) or sizes != [one.size for one in segments]:
                raise Abandoned("segments were removed or truncated meanwhile")
            if log.refusal is not None:
                raise Abandoned(f"the log is {log.refusal}")
            if self._removable() < self._horizon:
                raise Abandoned("a replica that fetches the whole log needs tombstones that this pass removes")
            await self._begin_swap(bases, fresh.suffixes)
            try:
                for segment in segments:
                    log.syncer.files.pop(segment.file, None)
                    segment.removed = True
                    segment.file.close()
                replace_segments(disk, log.folder, bases, fresh.suffixes)
                log.segments[first : first + len(old)] = [fresh.opened()]
                log.aborted.replace(bases, fresh.aborted)
                log.swaps += 1
                await end_swap(disk, log.folder)
            except OSError as error:
                log.take_offline(f"replacing segments of {log.folder} by a compacted one failed half-way: {error}")
                raise
            log.swapping = False

    async def _begin_swap(self, bases: list[int], suffixes: list[str]) -> None:
        """From here on no replica with a grant is served.

        Once the file that records the swap has its name, a start takes the new segment: its files must stay, however
        this ends. So a failed fsync takes the log offline, and a pass that is cancelled leaves the swap to the start.
        """
        log, disk = self._log, self._log.ports.disk
        log.swapping = True
        try:
            await begin_swap(disk, log.folder, bases, suffixes)
        except BaseException as error:
            log.swapping = is_recorded(disk, log.folder)
            if log.swapping and isinstance(error, OSError):
                log.take_offline(f"cannot record which segments of {log.folder} a compacted one replaces: {error}")
            raise


async def slices(segment: Segment, first: int = 0, before: int = ALL) -> AsyncIterator[tuple[memoryview, int, int]]:
    """The batches from offset `first` on and below `before`, in slices, each with its first and its end offset."""
    position, wants = 0, COMPACTION_SLICE_BYTES
    if (indexes := await segment.load()) is not None and first > segment.base:
        _, position = indexes.lookup(first)
    while position < segment.size:
        try:
            data = await segment.file.read_cold(position, min(wants, segment.size - position))
        except (OSError, ValueError) as error:
            raise _gone_or_failed(segment, error) from error
        if segment.removed:
            raise Abandoned("a segment was removed meanwhile")
        at, skipped, base, end = 0, 0, -1, 0
        while len(data) - at >= BATCH_HEADER_BYTES:
            header = read_header(data, at)
            if header.magic != 2 or header.size < BATCH_HEADER_BYTES or header.last_offset_delta < 0:
                raise StorageFailed(f"{segment.path_of(SEGMENT_SUFFIX)} at byte {position + at}: not a batch")
            if at + header.size > len(data):
                break
            if header.base_offset >= before:
                break
            if header.base_offset < first:
                skipped = at + header.size
            elif base < 0:
                base = header.base_offset
            at, end = at + header.size, header.last_offset + 1
        if at == 0:
            if len(data) >= BATCH_HEADER_BYTES and read_header(data).base_offset >= before:
                return
            if len(data) < min(wants, segment.size - position) or wants >= segment.size - position:
                raise StorageFailed(f"{segment.path_of(SEGMENT_SUFFIX)} ends in the middle of a batch")
            wants = int.from_bytes(data[8:PREFIX_BYTES]) + PREFIX_BYTES
            continue
        if skipped < at:
            yield memoryview(data)[skipped:at], base, end
        position, wants = position + at, COMPACTION_SLICE_BYTES


async def _aborted(log: "Log", base: int, end: int) -> tuple[Aborted, ...]:
    return tuple(await aborted_between(log, base, end))


def _gone_or_failed(segment: Segment, error: OSError | ValueError) -> Exception:
    if segment.removed:
        return Abandoned("a segment was removed meanwhile")
    return StorageFailed(f"cannot read {segment.path_of(SEGMENT_SUFFIX)}: {error}")
