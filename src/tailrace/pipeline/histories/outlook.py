"""What an archive has before it: each partition from where its history ends to where its log ends now.

The history alone says where it ends, so an archive that died, was moved, or is asked for other topics than before goes
on where it was; there is nothing beside it to be lost, or to say otherwise.
"""

from dataclasses import dataclass

from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, settled, start_offsets
from tailrace.pipeline.protections import stands
from tailrace.pipeline.source.options import Subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Offsets by partition, the same partitions in both."""

    start: Offsets
    end: Offsets


def outlook(
    cluster: Cluster, wanted: Subscription, archived: Offsets, *, committed: bool, if_lost: str = ""
) -> Outlook:
    """`DataLost`, with the advice `if_lost`, where a log no longer has what comes next."""
    partitions = wanted.partitions(cluster)
    first = start_offsets(cluster, partitions)
    goes_on = stands("archive: it goes on where the history ends")
    start = {one: archived.get(one, first[one]) if goes_on else first[one] for one in partitions}
    end = settled(cluster, start, end_offsets(cluster, partitions, committed=committed), committed=committed)
    for one in partitions:
        if end[one] < start[one]:
            said = f"{one} is archived up to offset {start[one]}, and its log ends at {end[one]}: was it made anew?"
            raise DataLost(f"{said} {if_lost}")
        if start[one] < first[one]:
            raise DataLost(
                f"{one} is archived up to offset {start[one]}, and its log begins at {first[one]}. {if_lost}"
            )
    return Outlook(start=start, end=end)
