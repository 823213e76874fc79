"""Periodic work of a broker: retention, checkpoints, fsync at intervals, and detecting stalls of the event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from tailrace.broker.background import Spawn
from tailrace.broker.lifecycle.checkpointing import Checkpointing
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import StorageFailed
from tailrace.model.settings import Settings
from tailrace.ports import Clock

logger: Final = logging.getLogger(__name__)

SETTLE_AGAIN_S: Final = 1.0  # how often failed disk operations on hosted partitions are retried
CHECKPOINT_CHECK_S: Final = 0.1  # how often the appended bytes are compared with the checkpoint interval
STALL_CHECK_S: Final = 0.05
STALL_MIN_S: Final = 0.02
STALL_WARNING_S: Final = 0.25  # shorter stalls are normal on a busy machine, and logged at DEBUG
STALL_REPORT_S: Final = 30.0  # at most one log line per interval
FLUSH_CHECK_S: Final = 0.5  # how late `flush.ms` may be honoured
LEADERLESS_CHECK_S: Final = 10.0
LEADERLESS_NAMED_MAX: Final = 5  # partitions that one log line names


class PeriodicTasks:
    def __init__(
        self,
        hosted: HostedPartitions,
        metadata: Partition,
        checkpointing: Checkpointing,
        clock: Clock,
        settings: Settings,
        spawn: Spawn,
    ) -> None:
        self._hosted = hosted
        self._metadata = metadata
        self._checkpointing = checkpointing
        self._clock = clock
        self._settings = settings
        self._spawn = spawn
        self._leaderless: dict[Partition, None] = {}  # at the last check
        self.stalls = 0  # how often the event loop was late by more than `STALL_MIN_S`

    def start(self) -> None:
        settings, spawn = self._settings, self._spawn
        spawn(_every(settings.log_retention_check_interval_ms / 1000, self.retain))
        spawn(_every(settings.log_checkpoint_interval_ms / 1000, self._checkpointing.checkpoint))
        spawn(_every(CHECKPOINT_CHECK_S, self._checkpoint_if_due))
        spawn(_every(SETTLE_AGAIN_S, self._hosted.settle))
        spawn(_every(LEADERLESS_CHECK_S, self.report_leaderless))
        spawn(self._watch_loop())
        if settings.fsync == "interval":
            spawn(_every(settings.fsync_interval_ms / 1000, self._sync))
        if settings.fsync != "always":
            spawn(_every(FLUSH_CHECK_S, self._sync_what_is_due))

    async def _checkpoint_if_due(self) -> None:
        await self._checkpointing.checkpoint_if_due(self._settings.log_checkpoint_interval_bytes)

    async def report_leaderless(self) -> None:
        """Log which hosted partitions have had no leader since the last check, and what is known of the reason."""
        before = self._leaderless
        self._leaderless = {one: None for one in (self._metadata, *self._hosted.all()) if one.leader is None}
        lasting = [one for one in self._leaderless if one in before]
        if lasting:
            some = "; ".join(_why_leaderless(one) for one in lasting[:LEADERLESS_NAMED_MAX])
            more = f"; and {len(lasting) - LEADERLESS_NAMED_MAX} more" if len(lasting) > LEADERLESS_NAMED_MAX else ""
            logger.warning(
                "%d partitions hosted here have had no leader for %d s: %s%s",
                len(lasting),
                LEADERLESS_CHECK_S,
                some,
                more,
            )

    async def retain(self) -> None:
        """Delete segments that exceed the topic's retention."""
        now_ms = self._clock.wall_ms()
        for partition in list(self._hosted.all()):
            try:
                deleted = await partition.log.retain(now_ms, partition.high_watermark)
            except (OSError, StorageFailed) as error:
                logger.error("%s: retention failed, retrying at the next check: %s", partition.name, error)
                continue
            if deleted:
                logger.info(
                    "%s: retention deleted %d segments, log start offset is now %d",
                    partition.name,
                    deleted,
                    partition.log.start,
                )

    async def _sync(self) -> None:
        for partition in list(self._hosted.all()):
            partition.log.sync_soon()
        self._metadata.log.sync_soon()

    async def _sync_what_is_due(self) -> None:
        now_ms = self._clock.wall_ms()
        if self._hosted.flush_by_time:
            for partition in list(self._hosted.all()):
                partition.log.sync_if_due(now_ms)

    async def _watch_loop(self) -> None:
        clock = self._clock
        reported_at, unreported, longest = clock.monotonic(), 0, 0.0
        while True:
            before = clock.monotonic()
            await asyncio.sleep(STALL_CHECK_S)
            now = clock.monotonic()
            late = now - before - STALL_CHECK_S
            if late > STALL_MIN_S:
                self.stalls += 1
                unreported, longest = unreported + 1, max(longest, late)
            if unreported and now - reported_at > STALL_REPORT_S:
                level = logging.WARNING if longest > STALL_WARNING_S else logging.DEBUG
                logger.log(level, "the event loop stalled %d times, at most for %d ms", unreported, longest * 1000)
                reported_at, unreported, longest = now, 0, 0.0


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(min(seconds, 86_400.0))
        await work()


def _why_leaderless(partition: Partition) -> str:
    replica = partition.replica
    voters = ",".join(str(voter.broker) for voter in replica.voters)
    state = f"{partition.name} ({replica.role.value} in epoch {partition.epoch}, voters {voters}"
    if partition.offline is not None:
        return f"{state}, offline: {partition.offline})"
    if not replica.may_vote:
        return f"{state}, may not vote: its log may lack acknowledged records)"
    if replica.ballot is not None:
        state += f", {replica.ballot}"
    if replica.last_refusal is not None:
        candidate, why = replica.last_refusal
        state += f", last refused its vote to broker {candidate.broker}: {why.value}"
    return f"{state})"
