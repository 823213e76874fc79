"""A client that sends Metadata to any broker: no two responses may name different leaders of one epoch."""

import asyncio
from typing import Final

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.leadership import Leaders

PAUSE_MAX_SECONDS: Final = 1.2


class MetadataWatcher:
    def __init__(self, router: Router, leaders: Leaders) -> None:
        self.name = router.name
        self._router = router
        self._leaders = leaders
        self.responses = 0
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            await self._check_leaders()
            await asyncio.sleep(self._router.rng.random() * PAUSE_MAX_SECONDS)

    async def _check_leaders(self) -> None:
        answer = await self._router.describe(None)
        if answer is None:
            return
        self.responses += 1
        for topic in answer.topics:
            for one in topic.partitions:
                if one.leader_id >= 0 and one.leader_epoch >= 0:
                    key = TopicPartition(topic.topic_id, one.partition)
                    self._leaders.check_leader(key, one.leader_epoch, BrokerId(one.leader_id), "a Metadata response")
