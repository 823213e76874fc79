"""Recovery checkpoints: after a crash, a log is scanned only from its recovery point on; after a clean shutdown, not at
all.

A checkpoint holds the recovery point and the high watermark of every log. It is written at intervals, when much was
appended, and at shutdown; a clean shutdown is marked by a file of its own.

How long a start takes after a crash depends on what lies above the recovery points of all logs together. `ScanCost`
counts that: a checkpoint begins whenever `log.flush.offset.checkpoint.interval.bytes` were appended since the last one
began. Such a checkpoint leaves out the logs that have got little, so that a broker with thousands of them does not sync
all for the sake of a few; together they hold a small part of the bytes, and the next checkpoint at an interval takes
all. While partitions are being opened their earlier points are kept, as a start may end before it has come to them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tailrace.broker.partitions.partition import Partition
from tailrace.log.directory.checkpoints import Checkpoint, store_checkpoints
from tailrace.log.directory.meta import write_clean_marker
from tailrace.log.recovery.recovered import RecoveryPoint
from tailrace.log.writing import ScanCost
from tailrace.model.ids import TopicPartition
from tailrace.ports import Ports

logger: Final = logging.getLogger(__name__)

CHECKPOINTS_AT_ONCE: Final = 16
LEFT_OUT_SHARE: Final = 8  # the logs that a checkpoint leaves out hold at most one part in so many


class Checkpointing:
    def __init__(
        self,
        ports: Ports,
        folder: str,
        partitions: Callable[[], Sequence[Partition]],
        unopened: Callable[[], Mapping[TopicPartition, Checkpoint]],
        scan_cost: ScanCost,
    ) -> None:
        self._ports = ports
        self._folder = folder
        self._partitions = partitions
        self._unopened = unopened  # the last run's checkpoints of partitions that are not open yet
        self._scan_cost = scan_cost
        self._cost_before = 0  # `scan_cost` when the last checkpoint began
        self._recorded: dict[TopicPartition, Checkpoint] = {}  # on disk, as far as this run has written them
        self._unrecorded: dict[TopicPartition, Checkpoint] | None = None  # the last ones, if writing them failed
        self._one_at_a_time = asyncio.Lock()

    async def checkpoint(self) -> None:
        """Checkpoint all logs that have changed."""
        async with self._one_at_a_time:
            await self._checkpoint(0)

    async def checkpoint_if_due(self, interval_bytes: int) -> None:
        """Checkpoint the logs that got the most, if the cost of a scan has grown by `interval_bytes`."""
        if self._scan_cost.bytes - self._cost_before >= interval_bytes and not self._one_at_a_time.locked():
            async with self._one_at_a_time:
                count = sum(partition.log.unsaved_cost > 0 for partition in self._partitions())
                await self._checkpoint(interval_bytes // LEFT_OUT_SHARE // max(count, 1))

    async def _checkpoint(self, cost_min: int) -> None:
        """Checkpoint the logs of which a scan would cost `cost_min` bytes or more."""
        if self._unrecorded is not None:
            await self._record(self._unrecorded)
            if self._unrecorded is not None:
                return  # a log must know that its last point is on disk before it gives a new one
        self._cost_before = self._scan_cost.bytes
        checkpoints = dict(self._unopened())
        points: dict[Partition, RecoveryPoint | None] = {}
        changed = []
        for partition in self._partitions():
            points[partition] = partition.log.recovery_point
            # there may be thousands of idle partitions: skip them
            if partition.log.unsaved_cost >= cost_min and not partition.log.is_checkpointed:
                changed.append(partition)
        for first in range(0, len(changed), CHECKPOINTS_AT_ONCE):
            group = changed[first : first + CHECKPOINTS_AT_ONCE]
            given = await asyncio.gather(*(partition.log.checkpoint() for partition in group))
            points.update(zip(group, given, strict=True))
        for partition, point in points.items():
            if point is not None:
                checkpoints[partition.key] = Checkpoint(recovery=point, high_watermark=partition.high_watermark)
        await self._record(checkpoints)

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

    async def mark_clean(self, *, all_scanned: bool) -> None:
        """Mark the shutdown as clean, if all logs and their checkpoint are on disk. Call it after closing the logs.

        `all_scanned`: no log is left that this run did not open and that the run before did not close.
        """
        saved = all(partition.log.stops_clean for partition in self._partitions())
        if self._unrecorded is not None or not all_scanned or not saved:
            logger.error(
                "unclean shutdown: not all logs and checkpoints are on disk, the next start will scan the logs"
            )
            return
        try:
            await write_clean_marker(self._ports.disk, self._folder, self._ports.host.boot_id())
        except OSError as error:
            logger.error("writing the clean-shutdown marker failed, the next start will scan the logs: %s", error)
