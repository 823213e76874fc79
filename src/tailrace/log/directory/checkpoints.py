"""The data directory's file `checkpoint`: recovery point, log start and high watermark of every partition.

One line a partition: topic id, partition number, recovery point, log start, high watermark. The file is replaced as a
whole. A partition without a line has no recovery point, so its log is scanned from its start; without the file, as in a
fresh directory, every log is.

When the file exists and is unreadable, the recovery points are unknown. Bad bytes could then be damage as well as a
torn tail, so no log may be truncated (`may_truncate` of `Log.open`).
"""

import logging
from collections.abc import Mapping
from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.recovery.recovered import RecoveryPoint
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
    """The checkpoints stored last, empty without a file; None when the file is unreadable."""
    path = f"{folder}/{CHECKPOINT_NAME}"
    if not disk.exists(path):
        return {}
    try:
        return dict(map(_parse, read_state(CHECKPOINT_NAME, VERSION, read_file(disk, path))))
    except (Unreadable, ValueError) as error:
        logger.error("%s is unreadable: all logs are scanned from their start, and none is truncated: %s", path, error)
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
