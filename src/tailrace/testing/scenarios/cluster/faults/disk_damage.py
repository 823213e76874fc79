"""A bit flips on one machine's disk while its broker is down, in a calm: see `budget`.

Below the recorded checkpoint that is damage. Recovery looks at the bytes of a segment that lead to the checkpoint, and
it is one of those that flips: the broker must find out when it starts, and neither vote nor count until it has
everything anew; other faults go on at once. Above the checkpoint a flip cannot be told from a torn tail: the log is cut
there, and the calm lasts until that machine has caught up.
"""

import random
from typing import Final, NamedTuple

from tailrace.broker.partitions.partition import Partition
from tailrace.log.directory.checkpoints import load_checkpoints
from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.model.topics import METADATA_TOPIC_ID
from tailrace.records.header import EPOCH_AT, MAGIC_AT
from tailrace.testing.scenarios.cluster.invariants.log_entries import BEGINNING, entries
from tailrace.testing.scenarios.cluster.invariants.observer import partitions_of
from tailrace.testing.scenarios.cluster.plan import DATA_DIR
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation.disk import SimDisk
from tailrace.testing.simulation.process import SimProcess

ONLOOKER: Final = "damage"
UNCHECKED: Final = range(EPOCH_AT, MAGIC_AT)  # of a batch: the leader epoch, which neither checksum nor order covers


class BatchLocation(NamedTuple):
    """A batch on a disk."""

    path: str
    position: int
    size: int
    base: int
    last: int


class Damage(NamedTuple):
    partition: Partition
    known: bool  # below the checkpoint; otherwise it looks like a torn tail


def flip_bit_in_log(server: Server, rng: random.Random) -> Damage | None:
    """Kill a broker and flip a bit in one of its logs; None: there was nothing to damage."""
    partitions = [
        one for one in partitions_of(server) if one.log.end > one.log.start and one.key.topic_id != METADATA_TOPIC_ID
    ]
    if not partitions:
        return None
    partition = rng.choice(partitions)
    server.crash(power_loss=False)
    storage = server.machine.storage
    recorded = load_checkpoints(SimDisk(storage, SimProcess(ONLOOKER, 0)), DATA_DIR) or {}
    safe = recorded[partition.key].recovery.offset if partition.key in recorded else 0
    spots = _spots(server, partition)
    home = max((one for one in partition.log.segments if one.base <= safe), key=lambda one: one.base)
    below = [spot for spot in spots if spot.last < safe and spot.path == home.path_of(SEGMENT_SUFFIX)][-1:]
    above = [spot for spot in spots if spot.base >= safe]
    if not below and not above:
        return None
    known = bool(below) and (not above or rng.random() < 0.5)
    spot = below[0] if known else rng.choice(above)
    storage.flip_bit(spot.path, spot.position + rng.choice([at for at in range(spot.size) if at not in UNCHECKED]))
    return Damage(partition, known)


def _spots(server: Server, partition: Partition) -> list[BatchLocation]:
    found = []
    segments = {segment.base: segment for segment in partition.log.segments}
    end = dict.fromkeys(segments, 0)  # of the batch before, by segment
    for entry, place in entries(server.machine.storage, partition.log, BEGINNING, partition.log.end):
        path = segments[place.segment].path_of(SEGMENT_SUFFIX)
        begin, end[place.segment] = end[place.segment], place.position
        found.append(BatchLocation(path, begin, place.position - begin, entry.base, entry.last))
    return found
