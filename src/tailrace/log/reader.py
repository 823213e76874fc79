"""Reads of a log: find the segment and the place in it, read, and let through what `take` has checked.

The usual read costs one bisection over the segments, one over the index and one look into the page cache; a consumer
that reads on is remembered by a hint, so that it need not step over what it has. Whatever is unusual (a cold page, an
index that is not loaded, an offset in a gap) is left to `read_cold`.
"""

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from tailrace.log.reading import Read, Taken, take
from tailrace.log.segment import Segment
from tailrace.model.faults import OffsetOutOfRange, StorageFailed
from tailrace.model.limits import batch_header_bytes
from tailrace.ports.disk import Buffer

if TYPE_CHECKING:
    from tailrace.log.log import Log

cached_reads_max: Final = 3  # so many attempts in the page cache


class Reader:
    def __init__(self, log: "Log") -> None:
        self._log = log

    def read(self, offset: int, max_bytes: int, limit: int) -> Read | None:
        log = self._log
        max_bytes = max(max_bytes, batch_header_bytes)  # it comes from clients: less could not even find a batch
        if offset >= limit or not log.start <= offset < log.end or log.damage is not None:
            nothing = self._outside(offset, limit)
            if nothing is not None:
                return nothing
        segment = log.segments[bisect_right(log.segments, offset, key=_base) - 1]
        if segment.indexes is None:
            return None
        expected, position = segment.place(offset)
        wants = max_bytes if expected == offset else max_bytes + segment.interval_bytes
        for _ in range(cached_reads_max):
            try:
                data = segment.file.read_cached(position, min(wants, segment.size - position))
            except OSError as error:
                raise _unreadable(segment, position, error) from error
            if not data:
                return None
            left = segment.size - position - len(data)
            taken = self._take(segment, position, data, left, expected, offset, max_bytes, limit)
            if taken.first >= 0:
                return Read(memoryview(data)[taken.first : taken.after], taken.next_offset)
            if not taken.wants:
                return None
            position, expected, wants = position + taken.after, taken.next_offset, max(taken.wants, max_bytes)
        return None

    async def read_cold(self, offset: int, max_bytes: int, limit: int) -> Read:
        log = self._log
        max_bytes = max(max_bytes, batch_header_bytes)
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
            expected, position = segment.place(offset)
            wants = max_bytes + segment.interval_bytes
            while wants and position < segment.size:
                asked = min(wants, segment.size - position)
                data = await self._cold(segment, position, asked)
                if segment.removed or offset < log.start:
                    raise OffsetOutOfRange(f"offset {offset} was removed while it was read")
                left = segment.size - position - len(data) if len(data) == asked else 0  # the file ends there if short
                taken = self._take(segment, position, data, left, expected, offset, max_bytes, limit)
                if taken.first >= 0:
                    return Read(memoryview(data)[taken.first : taken.after], taken.next_offset)
                position, expected = position + taken.after, taken.next_offset
                wants = max_bytes + taken.wants if taken.wants else 0
            if position < segment.size:  # what follows lies past the limit
                break
        return Read(b"", offset)

    async def _cold(self, segment: Segment, position: int, size: int) -> Buffer:
        try:
            return await segment.file.read_cold(position, size)
        except OSError as error:
            if segment.removed:
                return b""
            raise _unreadable(segment, position, error) from error

    def _outside(self, offset: int, limit: int) -> Read | None:
        log = self._log
        if not log.start <= offset <= log.end:
            raise OffsetOutOfRange(f"offset {offset} lies outside {log.start} to {log.end}")
        if log.damage is not None and offset >= log.damage.offset:
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
        if taken.problem is not None:
            self._log.found_damage(segment, position + taken.after, taken.next_offset, taken.problem)
            if taken.first < 0:
                raise StorageFailed(f"{self._log.folder} is {self._log.refusal}")
        elif taken.first >= 0:
            segment.hint = (taken.next_offset, position + taken.after)
        return taken


def _unreadable(segment: Segment, position: int, error: OSError) -> StorageFailed:
    return StorageFailed(f"{segment.file.path} at byte {position} could not be read: {error}")


def _base(segment: Segment) -> int:
    return segment.base
