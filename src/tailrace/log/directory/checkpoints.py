"""The data directory's `checkpoint`: for every partition how far it is safe, and how far it was known to be committed.

One line a partition: topic id, number, recovery offset, start, high watermark. It is replaced whole. Where a partition
has no line, nothing was promised but what its scan finds: every log is scanned from its beginning when the file is not
there, as in a fresh directory. A file that is there and cannot be read is another matter: nobody knows then which bad
bytes were promised and which are a torn tail, so no log may be cut (`Log.open`: `may_cut`).
"""

import logging
from collections.abc import Mapping
from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.recovery.found import RecoveryPoint
from tailrace.model.frozen import frozen
from tailrace.model.ids import TopicPartition, parse_id, show_id
from tailrace.ports.disk import Disk, read_file, replace_file

logger: Final = logging.getLogger(__name__)

CHECKPOINT_NAME: Final = "checkpoint"
VERSION: Final = 1


@frozen
class Checkpoint:
    recovery: RecoveryPoint
    high_watermark: int


def load_checkpoints(disk: Disk, folder: str) -> dict[TopicPartition, Checkpoint] | None:
    """What was stored last, nothing where nothing was; None when it cannot be read any more."""
    path = f"{folder}/{CHECKPOINT_NAME}"
    if not disk.exists(path):
        return {}
    try:
        return dict(map(_parse, read_state(CHECKPOINT_NAME, VERSION, read_file(disk, path))))
    except (Unreadable, ValueError) as error:
        logger.error("%s cannot be used, all logs will be scanned, and none is cut: %s", path, error)
        return None


async def store_checkpoints(disk: Disk, folder: str, checkpoints: Mapping[TopicPartition, Checkpoint]) -> None:
    lines = (_line(partition, checkpoint) for partition, checkpoint in checkpoints.items())
    await replace_file(disk, f"{folder}/{CHECKPOINT_NAME}", write_state(CHECKPOINT_NAME, VERSION, lines))


def _line(partition: TopicPartition, checkpoint: Checkpoint) -> str:
    point = checkpoint.recovery
    return (
        f"{show_id(partition.topic_id)} {partition.partition} {point.offset} {point.start} {checkpoint.high_watermark}"
    )


def _parse(line: str) -> tuple[TopicPartition, Checkpoint]:
    topic_id, partition, offset, start, high_watermark = line.split()
    point = RecoveryPoint(offset=int(offset), start=int(start))
    checkpoint = Checkpoint(recovery=point, high_watermark=int(high_watermark))
    return TopicPartition(parse_id(topic_id), int(partition)), checkpoint
