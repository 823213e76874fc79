"""A member of a share group (KIP-932), over the wire: it keeps its epoch and its assignment.

And a watch on the leaders that initialize share partitions: it notes what they are asked, and can let them fail.
"""

from typing import Any

from tailrace.broker.node import Node
from tailrace.model.faults import Fault
from tailrace.model.ids import Id, TopicPartition
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.unit.doors.kafka.consumers import GroupMember


class ShareLeaders:
    def __init__(self, *nodes: Node) -> None:
        self.asked: list[tuple[int, TopicPartition, int, int]] = []  # broker, partition, state epoch, start offset
        self.faults: list[Fault] = []  # for the next requests
        for node in nodes:
            self.attach(node)

    def attach(self, node: Node) -> None:
        async def initialize(
            group: str, topic_id: Id, partition: int, state_epoch: int, start_offset: int, metadata_end: int
        ) -> None:
            place = TopicPartition(topic_id, partition)
            self.asked.append((node.broker_id, place, state_epoch, start_offset))
            if self.faults:
                raise self.faults.pop(0)
            await initialize_here(group, topic_id, partition, state_epoch, start_offset, metadata_end)

        initialize_here = node.coordinators.leader_calls.initialize_here
        node.coordinators.leader_calls.initialize_here = initialize

    @property
    def starts(self) -> list[tuple[int, int]]:
        """Partition and start offset of each request."""
        return [(place.partition, start) for _, place, _, start in self.asked]


class ShareMember(GroupMember):
    async def join(self, **more: Any) -> Any:
        await self.served.call(FindCoordinatorRequest(coordinator_keys=(self.group,)), 6)
        return await self.beat(**{"member_epoch": 0, "subscribed_topic_names": self.topics, **more})

    async def leave(self) -> Any:
        return await self.beat(member_epoch=-1)

    async def beat(self, **more: Any) -> Any:
        fields = {"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch, **more}
        return self.take(await self.served.call(ShareGroupHeartbeatRequest(**fields), 1))

    async def beat_until(self, partitions: list[int]) -> None:
        """Send heartbeats until these partitions are assigned; the test's deadline bounds it."""
        while self.partitions != partitions:
            assert (await self.beat()).error_code == 0
