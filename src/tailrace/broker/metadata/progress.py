"""Waiting until this broker has applied the cluster metadata far enough."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.broker.metadata.follower import MetadataFollower
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import NotLeader
from tailrace.model.ids import Id
from tailrace.ports import Clock

LED_WITHIN_S: Final = 3.0
APPLIED_WITHIN_S: Final = 3.0
POLL_S: Final = 0.005


class MetadataProgress:
    def __init__(
        self, partition: Partition, follower: MetadataFollower, hosted: HostedPartitions, leaders: Leaders, clock: Clock
    ) -> None:
        self._partition = partition
        self._follower = follower
        self._hosted = hosted
        self._leaders = leaders
        self._clock = clock

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the committed metadata fulfils a condition."""
        await self._follower.until(condition)

    async def settled(self) -> None:
        """Wait until this broker has applied everything that is committed now."""
        target = self._partition.high_watermark
        await self._follower.until(lambda: self._follower.applied >= target)
        await self._hosted.settle()

    async def until_applied(self, end: int) -> None:
        """Wait until this broker has applied the metadata log up to an offset; `NotLeader` if it lags for longer."""
        try:
            async with asyncio.timeout(APPLIED_WITHIN_S):
                await self._follower.until(lambda: self._follower.applied >= end)
        except TimeoutError:
            applied = self._follower.applied
            raise NotLeader(f"this broker has applied the metadata up to offset {applied}, {end} is needed") from None

    async def until_led(self, topic_ids: Sequence[Id], within_s: float = LED_WITHIN_S) -> None:
        """Wait until topics are known here, or deleted, and all their partitions have a leader; at most `within_s`."""
        deadline = self._clock.monotonic() + min(within_s, LED_WITHIN_S)
        image = self._hosted.image
        for topic_id in topic_ids:
            led = 0  # partitions below have a leader
            while topic_id not in image.removed and self._clock.monotonic() < deadline:
                topic = image.topics_by_id.get(topic_id)
                if topic is not None and (led := self._leaders.first_unled(topic, led)) == len(topic.partitions):
                    break
                await asyncio.sleep(POLL_S)
