"""What an archive has to do: each partition from the end of its history to the current end of its log.

Only the history defines where it ends; there is no separate checkpoint that could be lost or disagree. So an archive
that crashed, was moved, or is given other topics continues where it was. A partition that has no history yet starts at
the offset that the options give; by default, at the start of its log.
"""

from dataclasses import dataclass

from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, recheck_ends, start_offsets
from tailrace.pipeline.source.offset_spec import resolve
from tailrace.pipeline.source.options import ReadOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOffsets:
    """Offsets by partition; `start` and `end` have the same partitions."""

    start: Offsets
    end: Offsets


def pending_offsets(cluster: Cluster, options: ReadOptions, archived: Offsets) -> PendingOffsets:
    """The offsets to archive next. `DataLost` when a log no longer has them."""
    partitions = options.subscription.partitions(cluster)
    fresh = [one for one in partitions if one not in archived]
    start = {one: archived[one] for one in partitions if one in archived}
    start |= resolve(cluster, options.start, fresh, committed=True)
    first = start_offsets(cluster, partitions)
    end = recheck_ends(cluster, start, end_offsets(cluster, partitions, committed=True), committed=True)
    for one in partitions:
        lost = ""
        if end[one] < start[one]:
            lost = f"its log ends at {end[one]}: was it deleted and created again?"
        elif start[one] < first[one]:
            lost = f"its log begins at {first[one]}."
        if lost:
            raise DataLost(f"{one} is to be archived from offset {start[one]} on, and {lost} {_advice(one, archived)}")
    return PendingOffsets(start=start, end=end)


def _advice(one: TopicPartition, archived: Offsets) -> str:
    if one not in archived:
        return "Begin elsewhere"
    return "Its history cannot go on without a gap: archive to another folder"
