"""What an archive has before it: each partition from where its history ends to where its log ends now.

The history alone says where it ends, so an archive that died, was moved, or is asked for other topics than before goes
on where it was; there is nothing beside it to be lost, or to say otherwise. A partition that has no history yet begins
where the options say, with its log if they say nothing.
"""

from dataclasses import dataclass

from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, settled, start_offsets
from tailrace.pipeline.source.edges import resolve
from tailrace.pipeline.source.options import ReadOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Offsets by partition, the same partitions in both."""

    start: Offsets
    end: Offsets


def outlook(cluster: Cluster, asked: ReadOptions, archived: Offsets) -> Outlook:
    """`DataLost` where a log does not have what comes next."""
    partitions = asked.subscription.partitions(cluster)
    fresh = [one for one in partitions if one not in archived]
    start = {one: archived[one] for one in partitions if one in archived}
    start |= resolve(cluster, asked.start, fresh, committed=True)
    first = start_offsets(cluster, partitions)
    end = settled(cluster, start, end_offsets(cluster, partitions, committed=True), committed=True)
    for one in partitions:
        lost = ""
        if end[one] < start[one]:
            lost = f"its log ends at {end[one]}: was it made anew?"
        elif start[one] < first[one]:
            lost = f"its log begins at {first[one]}."
        if lost:
            raise DataLost(f"{one} is to be archived from offset {start[one]} on, and {lost} {_advice(one, archived)}")
    return Outlook(start=start, end=end)


def _advice(one: TopicPartition, archived: Offsets) -> str:
    if one not in archived:
        return "Begin elsewhere"
    return "Its history cannot go on without a gap: archive to another folder"
