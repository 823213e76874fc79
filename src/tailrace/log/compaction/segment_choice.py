"""Which segments of a log a pass compacts, and which log is compacted first: Kafka's rules.

The *bound* is the lowest of high watermark, last stable offset and recorded recovery point. Closed segments that end at
or below it can be compacted. Those below `clean_to` are clean; the others are dirty up to the first whose newest record
is younger than `min.compaction.lag.ms`. A log is due when its dirty bytes are `min.cleanable.dirty.ratio` of all that a
pass would read, or when its oldest dirty record is older than `max.compaction.lag.ms`.
"""

from typing import TYPE_CHECKING

from tailrace.log.index.segment_indexes import NO_TIMESTAMP
from tailrace.log.segment import Segment
from tailrace.model.frozen import frozen
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.records.header import read_header

if TYPE_CHECKING:
    from tailrace.log.log import Log


@frozen
class Choice:
    segments: tuple[Segment, ...]  # from the first of the log on
    end: int  # where the last of them ends
    dirty_from: int  # the first dirty offset, which begins a batch
    ratio: float  # of dirty bytes to all
    overdue: bool  # by `max.compaction.lag.ms`

    @property
    def urgency(self) -> tuple[bool, float]:
        """By which the next log is chosen: the highest first."""
        return self.overdue, self.ratio


async def choose(log: "Log", bound: int, now_ms: int) -> Choice | None:
    """What a pass over this log would compact; None when it is not due."""
    settings, bound = log.settings, min(bound, log.recorded_offset)
    ends = [segment.base for segment in log.segments[1:]]
    chosen: list[Segment] = []
    clean_bytes = dirty_bytes = 0
    dirty_from, first_dirty = -1, None
    for segment, end in zip(log.segments[:-1], ends, strict=True):
        if end > bound or segment.removed or segment.has_gaps:  # earlier releases could write gaps, and none has
            break
        if end <= log.clean.clean_to:
            clean_bytes += segment.size
        else:
            if settings.min_compaction_lag_ms > 0 and await _newest(segment) > now_ms - settings.min_compaction_lag_ms:
                break
            if first_dirty is None:
                first_dirty, dirty_from = segment, max(segment.base, log.clean.clean_to)
            dirty_bytes += segment.size
        chosen.append(segment)
    if first_dirty is None or not dirty_bytes:
        return None
    overdue = await _oldest(first_dirty) < now_ms - settings.max_compaction_lag_ms
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    if ratio < settings.min_cleanable_dirty_ratio and not overdue:
        return None
    return Choice(
        segments=tuple(chosen), end=ends[len(chosen) - 1], dirty_from=dirty_from, ratio=ratio, overdue=overdue
    )


async def _newest(segment: Segment) -> int:
    newest = await segment.max_timestamp()
    return segment.file.modified_ms() if newest == NO_TIMESTAMP and not segment.removed else newest


async def _oldest(segment: Segment) -> int:
    """The timestamp of the first batch; as in Kafka, the file's time when the batch has none."""
    if segment.removed:
        return NO_TIMESTAMP
    oldest = read_header(await segment.file.read_cold(0, BATCH_HEADER_BYTES)).base_timestamp
    return oldest if oldest >= 0 or segment.removed else segment.file.modified_ms()
