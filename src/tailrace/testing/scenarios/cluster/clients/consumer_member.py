"""A member of a consumer group by the protocol of KIP-848: the coordinator deals, members say what they have.

It gives up what it is told to at once, and says so with its next heartbeat. By chance it leaves, falls silent and comes
back, or commits once more what it has given up.
"""

import asyncio
from typing import Final

from tailrace.model.ids import Id
from tailrace.testing.scenarios.cluster.clients.coordinator_client import GROUP_TYPE, CoordinatorClient
from tailrace.testing.scenarios.cluster.clients.group_offsets import GroupOffsets, MemberIdentity
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.group_history import GroupHistory
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedTopic,
)

GROUP: Final = "k"
HEARTBEAT_VERSION: Final = 1
JOINS: Final = 0
GOES: Final = -1
REBALANCE_TIMEOUT_MS: Final = 1_000
BEAT_SECONDS: Final = 0.3
SILENT_SECONDS: Final = 3.0
LEAVES: Final = 0.03  # at each beat
FALLS_SILENT: Final = 0.03


class ConsumerProtocolMember:
    def __init__(self, router: Router, ownership: GroupHistory, topic: str) -> None:
        self.name = router.name
        self._rng = router.rng
        self._ownership = ownership
        self._topic = topic
        self._topic_id: Id | None = None
        self._coordinator = CoordinatorClient(router, GROUP, GROUP_TYPE)
        self._offsets = GroupOffsets(router, self._coordinator, GROUP, topic, ownership)
        self._lives = 0
        self._come_back()
        self.stopping = False

    def _come_back(self) -> None:
        """As somebody else, who has nothing yet."""
        self._lives += 1
        self._standing = MemberIdentity(JOINS, f"{self.name}.{self._lives}")
        self._reached: dict[int, int | None] = {}  # what it has, and how far it has read

    async def run(self) -> None:
        while not self.stopping:
            if await self._beat():
                await self._commit()
            draw = self._rng.random()
            if draw < LEAVES:
                await self._coordinator.ask(self._request(GOES), HEARTBEAT_VERSION)
                self._come_back()
            elif draw < LEAVES + FALLS_SILENT:
                await asyncio.sleep(SILENT_SECONDS)
            await asyncio.sleep(BEAT_SECONDS * (0.5 + self._rng.random()))

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        owned = tuple(sorted(self._reached))
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._standing.member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=(self._topic,),
            topic_partitions=(OwnedTopic(topic_id=self._topic_id, partitions=owned),)
            if self._topic_id is not None and owned
            else (),
        )

    async def _beat(self) -> bool:
        """Whether it is a member, as far as it knows."""
        answer: ConsumerGroupHeartbeatResponse | None = await self._coordinator.ask(
            self._request(self._standing.generation), HEARTBEAT_VERSION
        )
        if answer is None:
            return False
        self._coordinator.told(answer.error_code)
        if answer.error_code in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID):
            await self._commit_again(list(self._reached))
            self._standing = self._standing._replace(generation=JOINS)
            self._reached = {}
        if answer.error_code != 0:
            return False
        self._standing = self._standing._replace(generation=answer.member_epoch)
        if answer.assignment is not None:
            self._take(answer)
        return True

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        """What it has from now on."""
        assert answer.assignment is not None
        given: list[int] = []
        for topic in answer.assignment.topic_partitions:
            self._topic_id = topic.topic_id
            given += topic.partitions
        for partition in given:
            self._ownership.assigned(answer.member_epoch, partition, self._standing.member_id)
        self._reached = {partition: self._reached.get(partition) for partition in given}

    async def _commit(self) -> None:
        for partition, reached in list(self._reached.items()):
            if reached is None:
                self._reached[partition] = await self._offsets.committed(partition)
            else:
                self._reached[partition] = await self._offsets.commit(self._standing, partition, reached)

    async def _commit_again(self, partitions: list[int]) -> None:
        """It has not understood that others have them by now."""
        for partition in partitions:
            reached = self._reached[partition]
            if reached is not None and self._rng.random() < 0.5:
                await self._offsets.commit(self._standing, partition, reached)
