"""Writing down how far every log is recovered, so that a crash rescans little and a clean stop nothing."""

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
        self._recorded: dict[TopicPartition, Checkpoint] = {}  # the checkpoints on disk, as far as written in this life
        self._unrecorded: dict[TopicPartition, Checkpoint] | None = None  # those that could not be written

    async def checkpoint(self) -> None:
        if self._unrecorded is not None:
            await self._record(self._unrecorded)
            if self._unrecorded is not None:
                return  # logs rely on the last points being recorded before they give others
        points: dict[Partition, RecoveryPoint | None] = {}
        stirred = []
        for partition in self._partitions():
            points[partition] = partition.log.recovery_point
            if not partition.log.is_checkpointed:  # most have nothing to do: there may be thousands at rest
                stirred.append(partition)
        for first in range(0, len(stirred), CHECKPOINTS_AT_ONCE):
            group = stirred[first : first + CHECKPOINTS_AT_ONCE]
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
            logger.error("the checkpoint could not be written, a crash would cost a longer scan: %s", error)
        else:
            self._recorded, self._unrecorded = checkpoints, None
            for partition in self._partitions():
                if (stored := checkpoints.get(partition.key)) is not None:
                    partition.log.recorded(stored.recovery)

    async def mark_clean(self) -> None:
        """After everything is closed: say so, if everything is on the disk and written down as such."""
        if self._unrecorded is not None or not all(partition.log.stops_clean for partition in self._partitions()):
            logger.error("this stop is not clean: not everything could be written down, the next start will scan")
            return
        try:
            await write_clean_marker(self._ports.disk, self._folder, self._ports.host.boot_id())
        except OSError as error:
            logger.error("this clean stop could not be marked, the next start will scan: %s", error)
