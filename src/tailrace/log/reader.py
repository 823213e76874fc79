"""Reads of a log: find the segment and the place in it, read, and let through what `take` has checked.

The usual read costs one bisection over the segments, one over the index and one look into the page cache; a consumer
that reads on is remembered by a hint, so that it need not step over what it has. Whatever is unusual (a cold page, an
index that is not loaded, an offset in a gap, bytes that make no sense) is left to `read_cold`. Where bytes make no
sense it may be the index that is wrong: it is made again from the batches, and only what then is still bad is damage.
"""

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from tailrace.log.checked_batches import Read, Taken, take
from tailrace.log.segment import Segment
from tailrace.model.faults import OffsetOutOfRange, StorageFailed
from tailrace.model.limits import BATCH_HEADER_BYTES, KiB
from tailrace.ports.disk import Buffer

if TYPE_CHECKING:
    from tailrace.log.log import Log

CACHED_READS_MAX: Final = 3  # so many attempts in the page cache
STEPPED_OVER_MAX_BYTES: Final = 64 * KiB  # read beside what was asked for, to find it; the interval may be gigabytes


class Reader:
    def __init__(self, log: "Log") -> None:
        self._log = log

    def read(self, offset: int, max_bytes: int, limit: int) -> Read | None:
        log = self._log
        max_bytes = max(max_bytes, BATCH_HEADER_BYTES)  # it comes from clients: less could not even find a batch
        if offset >= limit or not log.start <= offset < log.end or log.damage is not None or not log.segments:
            nothing = self._outside(offset, limit)
            if nothing is not None:
                return nothing
        segment = log.segments[bisect_right(log.segments, offset, key=_base) - 1]
        if segment.indexes is None:
            return None
        expected, position = segment.place(offset)
        wants = max_bytes if expected == offset else max_bytes + _stepped_over(segment)
        for _ in range(CACHED_READS_MAX):
            try:
                data = segment.file.read_cached(position, min(wants, segment.size - position))
            except (OSError, ValueError) as error:  # a closed file is a ValueError
                raise _unreadable(segment, position, error) from error
            if not data:
                return None
            left = segment.size - position - len(data)
            taken = self._take(segment, position, data, left, expected, offset, max_bytes, limit)
            if taken.first < 0 and taken.problem is not None:
                return None
            if taken.first >= 0:
                return Read(memoryview(data)[taken.first : taken.after], taken.next_offset)
            if not taken.wants:
                return None
            position, expected, wants = position + taken.after, taken.next_offset, max(taken.wants, max_bytes)
        return None

    async def read_cold(self, offset: int, max_bytes: int, limit: int) -> Read:
        log = self._log
        max_bytes = max(max_bytes, BATCH_HEADER_BYTES)
        nothing = self._outside(offset, limit)
        if nothing is not None:
            return nothing
        number = bisect_right(log.segments, offset, key=_base) - 1
        expected = log.segments[number].base
        for segment in log.segments[number:]:
            if await segment.load() is None:
                raise OffsetOutOfRange(f"offset {offset} was removed while it was read")
            if segment.base > expected and not segment.has_gaps:
                log.found_damage(segment, 0, expected, f"the segment that holds offset {expected} is missing")
                raise StorageFailed(f"{log.folder} is {log.refusal}")
            position, expected, read = await self._read_segment(segment, offset, max_bytes, limit)
            if read is not None:
                return read
            if position < segment.size:  # what follows lies past the limit
                break
        return Read(b"", offset)

    async def _read_segment(
        self, segment: Segment, offset: int, max_bytes: int, limit: int
    ) -> tuple[int, int, Read | None]:
        """What was read; how far one came, in bytes and in offsets."""
        log = self._log
        expected, position = segment.place(offset)
        by_index = position > 0
        wants = max_bytes + _stepped_over(segment)
        while wants and position < segment.size:
            asked = min(wants, segment.size - position)
            data = await self._cold(segment, position, asked)
            if segment.removed or offset < log.start:
                raise OffsetOutOfRange(f"offset {offset} was removed while it was read")
            left = segment.size - position - len(data) if len(data) == asked else 0  # the file ends there if short
            taken = self._take(segment, position, data, left, expected, offset, max_bytes, limit)
            if taken.first >= 0:
                return position, expected, Read(memoryview(data)[taken.first : taken.after], taken.next_offset)
            if taken.problem is not None and by_index:
                by_index = False
                if (bad := await segment.make_indexes_again()) is not None:
                    log.found_damage(segment, *bad)
                expected, position = segment.place(offset)
                continue
            position, expected = position + taken.after, taken.next_offset
            if taken.problem is not None:
                log.found_damage(segment, position, expected, taken.problem)
                raise StorageFailed(f"{log.folder} is {log.refusal}")
            wants = max(max_bytes, STEPPED_OVER_MAX_BYTES) + taken.wants if taken.wants else 0
        return position, expected, None

    async def _cold(self, segment: Segment, position: int, size: int) -> Buffer:
        try:
            return await segment.file.read_cold(position, size)
        except (OSError, ValueError) as error:
            if segment.removed:
                return b""
            raise _unreadable(segment, position, error) from error

    def _outside(self, offset: int, limit: int) -> Read | None:
        log = self._log
        if not log.start <= offset <= log.end:
            raise OffsetOutOfRange(f"offset {offset} lies outside {log.start} to {log.end}")
        if (log.damage is not None and offset >= log.damage.offset) or (offset < log.end and not log.segments):
            raise StorageFailed(f"{log.folder} is {log.refusal}")
        return Read(b"", offset) if offset >= limit or offset == log.end else None

    def _take(
        self,
        segment: Segment,
        position: int,
        data: Buffer,
        left: int,
        expected: int,
        offset: int,
        max_bytes: int,
        limit: int,
    ) -> Taken:
        if data:
            taken = take(memoryview(data), expected, offset, max_bytes, limit, self._log.end, left, segment.has_gaps)
        else:
            taken = Taken(-1, 0, expected, 0, "the file ends here, too early")
        if taken.first >= 0:
            if taken.problem is None:
                segment.hint = (taken.next_offset, position + taken.after)
            else:  # it follows on good batches, so no index is to blame
                self._log.found_damage(segment, position + taken.after, taken.next_offset, taken.problem)
        return taken


def _stepped_over(segment: Segment) -> int:
    return min(segment.interval_bytes, STEPPED_OVER_MAX_BYTES)


def _unreadable(segment: Segment, position: int, error: OSError | ValueError) -> StorageFailed:
    return StorageFailed(f"{segment.file.path} at byte {position} could not be read: {error}")


def _base(segment: Segment) -> int:
    return segment.base
