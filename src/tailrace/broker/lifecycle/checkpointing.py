"""Recovery checkpoints: after a crash, a log is scanned only from its recovery point on; after a clean shutdown, not at
all.

A checkpoint holds the recovery point and the high watermark of every log. It is written periodically and at shutdown;
a clean shutdown is marked by a file of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.broker.partitions.partition import Partition
from tailrace.log.directory.checkpoints import Checkpoint, store_checkpoints
from tailrace.log.directory.meta import write_clean_marker
from tailrace.log.recovery.recovered import RecoveryPoint
from tailrace.model.ids import TopicPartition
from tailrace.ports import Ports

logger: Final = logging.getLogger(__name__)

CHECKPOINTS_AT_ONCE: Final = 16


class Checkpointing:
    def __init__(self, ports: Ports, folder: str, partitions: Callable[[], Sequence[Partition]]) -> None:
        self._ports = ports
        self._folder = folder
        self._partitions = partitions
        self._recorded: dict[TopicPartition, Checkpoint] = {}  # on disk, as far as this run has written them
        self._unrecorded: dict[TopicPartition, Checkpoint] | None = None  # the last ones, if writing them failed

    async def checkpoint(self) -> None:
        if self._unrecorded is not None:
            await self._record(self._unrecorded)
            if self._unrecorded is not None:
                return  # a log must know that its last point is on disk before it gives a new one
        points: dict[Partition, RecoveryPoint | None] = {}
        changed = []
        for partition in self._partitions():
            points[partition] = partition.log.recovery_point
            if not partition.log.is_checkpointed:  # there may be thousands of idle partitions: skip them
                changed.append(partition)
        for first in range(0, len(changed), CHECKPOINTS_AT_ONCE):
            group = changed[first : first + CHECKPOINTS_AT_ONCE]
            given = await asyncio.gather(*(partition.log.checkpoint() for partition in group))
            points.update(zip(group, given, strict=True))
        await self._record(
            {
                partition.key: Checkpoint(recovery=point, high_watermark=partition.high_watermark)
                for partition, point in points.items()
                if point is not None
            }
        )

    async def _record(self, checkpoints: dict[TopicPartition, Checkpoint]) -> None:
        if checkpoints == self._recorded:
            return
        self._unrecorded = checkpoints
        try:
            await store_checkpoints(self._ports.disk, self._folder, checkpoints)
        except OSError as error:
            logger.error("writing the recovery checkpoint failed, a crash would cost a longer log scan: %s", error)
        else:
            self._recorded, self._unrecorded = checkpoints, None
            for partition in self._partitions():
                if (stored := checkpoints.get(partition.key)) is not None:
                    partition.log.recorded(stored.recovery)

    async def mark_clean(self) -> None:
        """Mark the shutdown as clean, if all logs and their checkpoint are on disk. Call it after closing the logs."""
        if self._unrecorded is not None or not all(partition.log.stops_clean for partition in self._partitions()):
            logger.error(
                "unclean shutdown: not all logs and checkpoints are on disk, the next start will scan the logs"
            )
            return
        try:
            await write_clean_marker(self._ports.disk, self._folder, self._ports.host.boot_id())
        except OSError as error:
            logger.error("writing the clean-shutdown marker failed, the next start will scan the logs: %s", error)
