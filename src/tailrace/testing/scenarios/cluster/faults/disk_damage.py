"""Flips a bit in a log on one machine's disk while its broker is down; `budget` says when that is allowed.

Below the recorded checkpoint it is damage that the broker must detect at its start. Recovery checks the bytes of a
segment just below the checkpoint, so the bit is flipped there, in the last batch. The replica must neither vote nor
count towards a majority until it has refetched the log; other faults go on meanwhile.

A bit further below is found by nobody but the scrub, as no client reads there again. No other fault is injected until
it has found the damage and the replica is repaired, which must not take long (`Invariant.SCRUBBED`).

Above the checkpoint recovery cannot tell a flipped bit from a torn tail: it cuts the log there. No other fault is
injected until that machine has caught up.
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
from tailrace.testing.simulation.file_content import FileContent
from tailrace.testing.simulation.process import SimProcess

READER_NAME: Final = "damage"
UNCHECKED: Final = range(EPOCH_AT, MAGIC_AT)  # bytes of a batch's header: the leader epoch, which no checksum covers


class BatchLocation(NamedTuple):
    path: str
    position: int
    size: int
    base: int
    last: int


class Damage(NamedTuple):
    partition: Partition
    is_detectable: bool  # below the checkpoint; otherwise it looks like a torn tail
    for_scrub: bool
    batch: BatchLocation
    bad: bytes  # the batch with the flipped bit


def is_on_disk(server: Server, damage: Damage) -> bool:
    """Whether the damaged batch is still where it was."""
    path, position, size = damage.batch[:3]
    content = server.machine.storage.tree.find(path)
    return isinstance(content, FileContent) and bytes(content.visible[position : position + size]) == damage.bad


def flip_bit_in_log(server: Server, rng: random.Random) -> Damage | None:
    """Kill a broker and flip a bit in one of its logs; None if there was nothing to damage."""
    partitions = [
        one for one in partitions_of(server) if one.log.end > one.log.start and one.key.topic_id != METADATA_TOPIC_ID
    ]
    if not partitions:
        return None
    partition = rng.choice(partitions)
    server.crash(power_loss=False)
    storage = server.machine.storage
    checkpoints = load_checkpoints(SimDisk(storage, SimProcess(READER_NAME, 0)), DATA_DIR) or {}
    checkpoint = checkpoints[partition.key].recovery.offset if partition.key in checkpoints else 0
    batches = _batches(server, partition)
    segment = max((one for one in partition.log.segments if one.base <= checkpoint), key=lambda one: one.base)
    path = segment.path_of(SEGMENT_SUFFIX)
    below = [batch for batch in batches if batch.last < checkpoint and batch.path == path][-1:]
    above = [batch for batch in batches if batch.base >= checkpoint]
    if not below and not above:
        return None
    is_detectable = bool(below) and (not above or rng.random() < 0.5)
    batch = below[0] if is_detectable else rng.choice(above)
    deep = [batch for batch in batches if batch.last < checkpoint][:-1]
    for_scrub = bool(deep) and rng.random() < 0.5
    if for_scrub:
        batch, is_detectable = rng.choice(deep), True
    checked = [at for at in range(batch.size) if at not in UNCHECKED]
    storage.flip_bit(batch.path, batch.position + rng.choice(checked))
    content = storage.tree.find(batch.path)
    assert isinstance(content, FileContent)
    bad = bytes(content.visible[batch.position : batch.position + batch.size])
    return Damage(partition, is_detectable, for_scrub, batch, bad)


def _batches(server: Server, partition: Partition) -> list[BatchLocation]:
    found = []
    segments = {segment.base: segment for segment in partition.log.segments}
    ends = dict.fromkeys(segments, 0)  # where the last batch that was found in each segment ends
    for entry, next_place in entries(server.machine.storage, partition.log, BEGINNING, partition.log.end):
        path = segments[next_place.segment].path_of(SEGMENT_SUFFIX)
        begin, ends[next_place.segment] = ends[next_place.segment], next_place.position
        found.append(BatchLocation(path, begin, next_place.position - begin, entry.base, entry.last))
    return found
