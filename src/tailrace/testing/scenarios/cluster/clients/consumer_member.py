"""A consumer group member of the consumer protocol (KIP-848): the coordinator assigns, members report what they own.

The member revokes partitions at once when it is told to, and reports that with its next heartbeat. At random it leaves
and joins again, pauses longer than its session timeout, or commits once more for partitions it no longer owns.
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
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
REBALANCE_TIMEOUT_MS: Final = 1_000
HEARTBEAT_SECONDS: Final = 0.3
PAUSE_SECONDS: Final = 3.0  # longer than the session timeout
LEAVE_CHANCE: Final = 0.03  # after each heartbeat
PAUSE_CHANCE: Final = 0.03  # after each heartbeat


class ConsumerProtocolMember:
    def __init__(self, router: Router, history: GroupHistory, topic: str) -> None:
        self.name = router.name
        self._rng = router.rng
        self._history = history
        self._topic = topic
        self._topic_id: Id | None = None
        self._coordinator = CoordinatorClient(router, GROUP, GROUP_TYPE)
        self._offsets = GroupOffsets(router, self._coordinator, GROUP, topic, history)
        self._member_ids = 0  # used so far
        self._become_new_member()
        self.stopping = False

    def _become_new_member(self) -> None:
        self._member_ids += 1
        self._member = MemberIdentity(JOIN_EPOCH, f"{self.name}.{self._member_ids}")
        self._positions: dict[int, int | None] = {}  # of the owned partitions; None: not fetched yet

    async def run(self) -> None:
        while not self.stopping:
            if await self._heartbeat():
                await self._commit()
            draw = self._rng.random()
            if draw < LEAVE_CHANCE:
                left = await self._coordinator.call(self._request(LEAVE_EPOCH), HEARTBEAT_VERSION)
                if left is not None and left.error_code == 0:
                    self._history.left(self._member.member_id)
                self._become_new_member()
            elif draw < LEAVE_CHANCE + PAUSE_CHANCE:
                await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.sleep(HEARTBEAT_SECONDS * (0.5 + self._rng.random()))

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        owned = tuple(sorted(self._positions))
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._member.member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=(self._topic,),
            topic_partitions=(OwnedTopic(topic_id=self._topic_id, partitions=owned),)
            if self._topic_id is not None and owned
            else (),
        )

    async def _heartbeat(self) -> bool:
        """Whether the coordinator accepted the heartbeat."""
        response: ConsumerGroupHeartbeatResponse | None = await self._coordinator.call(
            self._request(self._member.generation), HEARTBEAT_VERSION
        )
        if response is None:
            return False
        self._coordinator.check_error(response.error_code)
        if response.error_code in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID):
            await self._commit_while_fenced(list(self._positions))
            self._member = self._member._replace(generation=JOIN_EPOCH)
            self._positions = {}
        if response.error_code != 0:
            return False
        self._member = self._member._replace(generation=response.member_epoch)
        if response.assignment is not None:
            self._take_assignment(response)
        return True

    def _take_assignment(self, response: ConsumerGroupHeartbeatResponse) -> None:
        assert response.assignment is not None
        assigned: list[int] = []
        for topic in response.assignment.topic_partitions:
            self._topic_id = topic.topic_id
            assigned += topic.partitions
        for partition in assigned:
            self._history.assigned(response.member_epoch, partition, self._member.member_id)
        self._positions = {partition: self._positions.get(partition) for partition in assigned}

    async def _commit(self) -> None:
        for partition, position in list(self._positions.items()):
            if position is None:
                self._positions[partition] = await self._offsets.committed(partition)
            else:
                self._positions[partition] = await self._offsets.commit(self._member, partition, position)

    async def _commit_while_fenced(self, partitions: list[int]) -> None:
        """Commit for partitions that other members may own by now; it must be refused then."""
        for partition in partitions:
            position = self._positions[partition]
            if position is not None and self._rng.random() < 0.5:
                await self._offsets.commit(self._member, partition, position)
