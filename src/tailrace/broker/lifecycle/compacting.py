"""Compaction of the hosted partitions, in the background: one log at a time, the one that needs it most first.

A log is compacted if its topic's `cleanup.policy` includes compact, below its last stable offset, by every replica on
its own. Internal topics are left out: their coordinators write what is live again. Nothing is compacted before every
registered broker knows the empty batches that take the place of removed ones (`COMPACTION_LEVEL`).

The cleaner runs in a worker process, which is started for a pass and ended after it. A pass that fails is logged and
tried again later: a full disk, a worker process that was killed, or a log that changed meanwhile cost only the pass.

A leader also raises the tombstone horizon of its partitions, which lets all replicas remove tombstones (ADR 0025).
"""

import asyncio
import logging
from typing import Final

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.features import COMPACTION_LEVEL
from tailrace.log.compaction.compaction import Abandoned, compact
from tailrace.log.compaction.segment_choice import Choice, choose
from tailrace.model.faults import StorageFailed
from tailrace.ports import Ports
from tailrace.ports.offload import WorkerLost

logger: Final = logging.getLogger(__name__)


class Compacting:
    def __init__(self, hosted: HostedPartitions, ports: Ports) -> None:
        self._hosted = hosted
        self._ports = ports
        self._failed: dict[Partition, str] = {}  # why its last pass failed: the same reason is logged once

    async def run(self) -> None:
        """Compact the partitions that are due, in an endless loop."""
        while True:
            if not await self.compact_one():
                await asyncio.sleep(self._hosted.effective.log_cleaner_backoff_ms / 1000)

    async def compact_one(self) -> bool:
        """Compact the log that needs it most; returns whether a pass succeeded, so that there may be more to do."""
        if self._hosted.image.level < COMPACTION_LEVEL or not self._hosted.effective.log_cleaner_enable:
            return False
        compacted = self._compacted()
        await self._raise_horizons(compacted)
        for partition, choice in await self._due(compacted):
            if await self._pass(partition, choice):
                return True
        return False

    def _compacted(self) -> list[Partition]:
        return [
            partition
            for partition in self._hosted.all()
            if partition.log.settings.is_compacted
            and not partition.is_internal
            and partition.log.refusal is None
            and not partition.log.refilling
        ]

    async def _raise_horizons(self, compacted: list[Partition]) -> None:
        for partition in compacted:
            try:
                await partition.raise_horizon()
            except StorageFailed as error:
                self._report(partition, str(error))

    async def _due(self, compacted: list[Partition]) -> list[tuple[Partition, Choice]]:
        """The partitions to compact, the most urgent first."""
        now_ms, due = self._ports.clock.wall_ms(), []
        for partition in compacted:
            log = partition.log
            try:
                choice = await choose(log, partition.last_stable, now_ms)
            except (OSError, ValueError, StorageFailed) as error:
                self._report(partition, str(error))
                continue
            if choice is not None:
                due.append((partition, choice))
        return sorted(due, key=lambda one: one[1].urgency, reverse=True)

    async def _pass(self, partition: Partition, choice: Choice) -> bool:
        settings, started = self._hosted.effective, self._ports.clock.monotonic()
        throttle = Throttled(self._ports, settings.log_cleaner_io_max_bytes_per_second)
        from tailrace.log.compaction.cleaner import Cleaner  # most brokers never need it, and it delays the start

        secret = bytes(self._ports.random.new_id())
        session = self._ports.offload.session(Cleaner, settings.log_cleaner_dedupe_buffer_size, secret)
        try:
            done = await compact(partition.log, choice, session, throttle.moved, partition.removable)
        except (OSError, StorageFailed, WorkerLost, Abandoned) as error:
            self._report(partition, str(error) or type(error).__name__)
            return False
        finally:
            session.close()
        self._failed.pop(partition, None)
        logger.info(
            "%s: compacted up to offset %d in %.1f s: %d bytes became %d%s",
            partition.name,
            done.upto,
            self._ports.clock.monotonic() - started,
            done.bytes_before,
            done.bytes_after,
            "; it has more keys than fit into log.cleaner.dedupe.buffer.size, going on" if done.full else "",
        )
        return True

    def _report(self, partition: Partition, reason: str) -> None:
        level = logging.DEBUG if self._failed.get(partition) == reason else logging.WARNING
        logger.log(level, "%s: compaction failed, the old segments stay, retrying later: %s", partition.name, reason)
        self._failed[partition] = reason


class Throttled:
    """Waits so that no more than so many bytes are moved in a second, on average since the pass began."""

    def __init__(self, ports: Ports, bytes_per_second: float) -> None:
        self._clock = ports.clock
        self._rate = bytes_per_second
        self._began = ports.clock.monotonic()
        self._moved = 0

    async def moved(self, count: int) -> None:
        self._moved += count
        ahead = self._moved / self._rate - (self._clock.monotonic() - self._began)
        await asyncio.sleep(max(ahead, 0))
