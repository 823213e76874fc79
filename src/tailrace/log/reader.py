"""Reads of a log: find the segment and the position, read the bytes, and return only whole batches that were checked.

The usual read costs one bisection over the segments, one over the offset index and one read from the page cache. The
place where the last read ended is kept as a hint, so a consumer that reads sequentially does not step over batches it
has had. Every unusual case (pages not in the cache, an index that is not loaded, an offset inside a gap, bytes that are
not the expected batch) is left to `read_cold`, which awaits the disk.

Compaction leaves empty batches where whole batches were. Replicas need them; consumers do not, and librdkafka reports
an error after ten responses with nothing else in them. With `skip_empty`, a read goes on to the first batch that has
records, and one empty batch takes the place of those that were skipped: a reader that compares the log with a copy sees
that compaction has been there. If there is no record below the limit, the empty batches are returned, so that the
reader gets on.

Every byte that a consumer gets has passed the loop in `extract`: it steps over batches before the wanted offset, and
takes batches while they fit, match their checksum and lie wholly below the limit. It looks at 27 bytes of each header.
Offsets are not covered by the checksum, so they are compared with their neighbours: each batch begins where the one
before it ended, or later where the segment has gaps.

When bytes are not the expected batch, the index may have led to the wrong position. So it is rebuilt from the batches
first; only what is still bad afterwards is reported as damage.
"""

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from tailrace.log.compaction.fillers import Fillers
from tailrace.log.segment import Segment
from tailrace.log.segment_walk import checksum_problem
from tailrace.model.faults import OffsetOutOfRange, StorageFailed
from tailrace.model.limits import BATCH_HEADER_BYTES, RECORD_BATCH_MAX_BYTES, KiB
from tailrace.ports.disk import Buffer
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, PREFIX_BYTES

if TYPE_CHECKING:
    from tailrace.log.log import Log

CACHED_READS_MAX: Final = 3  # attempts in the page cache before the read is left to `read_cold`
STEPPED_OVER_MAX_BYTES: Final = 64 * KiB  # read in excess to reach the wanted batch: index intervals can be huge
STEP: Final = struct.Struct(">qi4xbI2xi")  # base offset, length, magic, checksum, last offset delta
BASE_AND_EPOCH: Final = struct.Struct(">q4xi")
LENGTH_MIN_BYTES: Final = BATCH_HEADER_BYTES - PREFIX_BYTES  # of a batch without records


class Read(NamedTuple):
    """Whole batches, checked. The first may begin below the offset asked for."""

    data: Buffer
    next_offset: int  # where to read on; the offset asked for, when there is no data


class Extracted(NamedTuple):
    first: int  # where the first batch taken begins in the bytes; -1 when none was taken
    after: int  # where the first batch not taken begins
    next_offset: int  # after the last batch taken or stepped over
    wants: int  # bytes that the batch at `after` needs, when nothing was taken because too few were read
    problem: str | None  # what is wrong with the batch at `after`


class Reader:
    def __init__(self, log: "Log") -> None:
        self._log = log

    def read(self, offset: int, max_bytes: int, limit: int, skip_empty: bool) -> Read | None:
        log = self._log
        max_bytes = max(max_bytes, BATCH_HEADER_BYTES)  # clients choose it; with less no batch could be found
        if offset >= limit or not log.start <= offset < log.end or log.damage is not None or not log.segments:
            nothing = self._check_range(offset, limit)
            if nothing is not None:
                return nothing
        segment = log.segments[bisect_right(log.segments, offset, key=_base) - 1]
        if segment.indexes is None:
            return None
        expected, position = segment.lookup(offset)
        wants = max_bytes if expected == offset else max_bytes + _stepped_over(segment)
        for _ in range(CACHED_READS_MAX):
            try:
                data = segment.file.read_cached(position, min(wants, segment.size - position))
            except (OSError, ValueError) as error:  # ValueError: the file was closed
                raise _unreadable(segment, position, error) from error
            if not data:
                return None
            left = segment.size - position - len(data)
            taken = self._extract(segment, position, data, left, expected, offset, max_bytes, limit, skip_empty)
            if taken.first < 0 and taken.problem is not None:
                return None
            if taken.first >= 0:
                batches = memoryview(data)[taken.first : taken.after]
                return Read(self._after_filler(batches, offset) if skip_empty else batches, taken.next_offset)
            if not taken.wants:
                return None
            position, expected, wants = position + taken.after, taken.next_offset, max(taken.wants, max_bytes)
        return None

    async def read_cold(self, offset: int, max_bytes: int, limit: int, skip_empty: bool) -> Read:
        while True:
            swaps = self._log.swaps
            try:
                read = await self._read_cold(offset, max_bytes, limit, skip_empty)
                if skip_empty and read.data:
                    return read._replace(data=self._after_filler(memoryview(read.data), offset))
                return await self._read_cold(offset, max_bytes, limit, False) if skip_empty else read
            except OffsetOutOfRange:
                if swaps == self._log.swaps:
                    raise  # otherwise its segment was not deleted, but replaced by a compacted one: look again

    async def _read_cold(self, offset: int, max_bytes: int, limit: int, skip_empty: bool) -> Read:
        log = self._log
        max_bytes = max(max_bytes, BATCH_HEADER_BYTES)
        nothing = self._check_range(offset, limit)
        if nothing is not None:
            return nothing
        number = bisect_right(log.segments, offset, key=_base) - 1
        expected = log.segments[number].base
        for segment in log.segments[number:]:
            if await segment.load() is None:
                raise _deleted_meanwhile(offset)
            if segment.base > expected and not segment.has_gaps:
                log.found_damage(segment, 0, expected, f"the segment that holds offset {expected} is missing")
                raise StorageFailed(f"{log.folder} is {log.refusal}")
            position, expected, read = await self._read_segment(segment, offset, max_bytes, limit, skip_empty)
            if read is not None:
                return read
            if position < segment.size:  # the next batch lies past the limit
                break
        return Read(b"", offset)

    async def _read_segment(
        self, segment: Segment, offset: int, max_bytes: int, limit: int, skip_empty: bool
    ) -> tuple[int, int, Read | None]:
        """The position and the offset that were reached, and the batches that were read."""
        log = self._log
        expected, position = segment.lookup(offset)
        by_index = position > 0
        wants = max_bytes + _stepped_over(segment)
        while wants and position < segment.size:
            asked = min(wants, segment.size - position)
            data = await self._read_bytes_cold(segment, position, asked)
            if segment.removed or offset < log.start:
                raise _deleted_meanwhile(offset)
            left = segment.size - position - len(data) if len(data) == asked else 0  # a short read: the file ends there
            taken = self._extract(segment, position, data, left, expected, offset, max_bytes, limit, skip_empty)
            if taken.first >= 0:
                return position, expected, Read(memoryview(data)[taken.first : taken.after], taken.next_offset)
            if taken.problem is not None and by_index:
                by_index = False
                if (bad := await segment.rebuild_indexes()) is not None:
                    log.found_damage(segment, *bad)
                expected, position = segment.lookup(offset)
                continue
            position, expected = position + taken.after, taken.next_offset
            if taken.problem is not None:
                log.found_damage(segment, position, expected, taken.problem)
                raise StorageFailed(f"{log.folder} is {log.refusal}")
            wants = max(max_bytes, STEPPED_OVER_MAX_BYTES) + taken.wants if taken.wants else 0
        return position, expected, None

    async def _read_bytes_cold(self, segment: Segment, position: int, size: int) -> Buffer:
        try:
            return await segment.file.read_cold(position, size)
        except (OSError, ValueError) as error:
            if segment.removed:
                return b""
            raise _unreadable(segment, position, error) from error

    def _check_range(self, offset: int, limit: int) -> Read | None:
        """An empty read at the limit or the log end; None when there is something to read; else a fault."""
        log = self._log
        if not log.start <= offset <= log.end:
            raise OffsetOutOfRange(f"offset {offset} is out of range: the log has offsets {log.start} to {log.end}")
        if (log.damage is not None and offset >= log.damage.offset) or (offset < log.end and not log.segments):
            raise StorageFailed(f"{log.folder} is {log.refusal}")
        return Read(b"", offset) if offset >= limit or offset == log.end else None

    def _extract(
        self,
        segment: Segment,
        position: int,
        data: Buffer,
        left: int,
        expected: int,
        offset: int,
        max_bytes: int,
        limit: int,
        skip_empty: bool,
    ) -> Extracted:
        if data:
            view, end = memoryview(data), self._log.end
            taken = extract(view, expected, offset, max_bytes, limit, end, left, segment.has_gaps, skip_empty)
        else:
            taken = Extracted(-1, 0, expected, 0, "the file ends too early")
        if taken.first >= 0:
            if taken.problem is None:
                segment.hint = (taken.next_offset, position + taken.after)
            else:  # good batches stand right before it, so the index is not to blame
                self._log.found_damage(segment, position + taken.after, taken.next_offset, taken.problem)
        return taken

    def _after_filler(self, batches: memoryview, offset: int) -> Buffer:
        """These batches, after one empty batch for the offsets from `offset` on that were skipped to reach them.

        Gaps stay gaps: what is missing there was not compacted away."""
        base: int
        base, epoch = BASE_AND_EPOCH.unpack_from(batches)
        if base <= offset or any(segment.has_gaps for segment in self._log.segments):
            return batches
        fillers = Fillers()
        fillers.add(offset, base - 1, epoch)
        return fillers.take() + batches


def extract(
    view: memoryview,
    expected: int,
    offset: int,
    max_bytes: int,
    limit: int,
    end: int,
    left: int,
    has_gaps: bool,
    skip_empty: bool = False,
) -> Extracted:
    """The batches that can be served from `view`, which begins with the batch at offset `expected`.

    `limit` is where readers stop, `end` the log end; `left` bytes of the segment follow after `view`. With
    `skip_empty`, the first batch served has records.
    """
    got = len(view)
    at = 0
    first = -1
    unpack = STEP.unpack_from
    while got - at >= BATCH_HEADER_BYTES:
        base, length, magic, checksum, delta = unpack(view, at)
        after = at + PREFIX_BYTES + length
        last = base + delta
        if (
            (base != expected and not (has_gaps and base > expected))
            or delta < 0
            or last >= end
            or magic != 2
            or length < LENGTH_MIN_BYTES
        ):
            problem = (
                f"bad header (offsets {base} to {last}, magic {magic}, length {length}), expected offset {expected}"
            )
            return Extracted(first, at, expected, 0, problem)
        if last >= limit:
            return Extracted(first, at, expected, 0, None)
        if after > got:
            if length > RECORD_BATCH_MAX_BYTES or after > got + left:
                return Extracted(
                    first, at, expected, 0, f"the header gives an impossible batch size of {after - at} bytes"
                )
            return Extracted(first, at, expected, 0 if first >= 0 else after - at, None)
        if last >= offset:
            if first < 0:
                if skip_empty and length == LENGTH_MIN_BYTES:
                    at, expected = after, last + 1
                    continue
                first = at
            elif after - first > max_bytes:
                return Extracted(first, at, expected, 0, None)
            if crc32c(view[at + CHECKED_FROM : after]) != checksum:
                return Extracted(first if first < at else -1, at, expected, 0, checksum_problem(view[at:after]))
        at = after
        expected = last + 1
    rest = got - at + left
    if 0 < rest < BATCH_HEADER_BYTES:
        problem = f"only {rest} bytes are left, a batch header has {BATCH_HEADER_BYTES}"
        return Extracted(first, at, expected, 0, problem)
    wants = BATCH_HEADER_BYTES if first < 0 and rest else 0
    return Extracted(first, at, expected, wants, None)


def _stepped_over(segment: Segment) -> int:
    return min(segment.interval_bytes, STEPPED_OVER_MAX_BYTES)


def _unreadable(segment: Segment, position: int, error: OSError | ValueError) -> StorageFailed:
    return StorageFailed(f"cannot read {segment.file.path} at byte {position}: {error}")


def _deleted_meanwhile(offset: int) -> OffsetOutOfRange:
    return OffsetOutOfRange(f"offset {offset} was deleted while it was being read")


def _base(segment: Segment) -> int:
    return segment.base
