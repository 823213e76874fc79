"""Members of groups, over the wire, that keep their epoch and their assignment; `Consumer` is one of KIP-848."""

from typing import Any

from tailrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, OwnedTopic
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.unit.doors.kafka.served import Served


class GroupMember:
    """What members of consumer groups and of share groups have in common."""

    def __init__(self, served: Served, member_id: str, *topics: str, group: str = "g") -> None:
        self.served = served
        self.group = group
        self.id = member_id
        self.topics = topics
        self.epoch = 0
        self.has: tuple[OwnedTopic, ...] = ()

    def take(self, answer: Any) -> Any:
        """Keep what the coordinator has answered."""
        if answer.error_code == 0:
            self.id, self.epoch = answer.member_id, answer.member_epoch
            if answer.assignment is not None:
                self.has = answer.assignment.topic_partitions
        return answer

    @property
    def partitions(self) -> list[int]:
        """The assigned partitions of all topics."""
        return [one for topic in self.has for one in topic.partitions]


class Consumer(GroupMember):
    async def join(self, version: int = 1, **more: Any) -> Any:
        await self.served.call(FindCoordinatorRequest(coordinator_keys=(self.group,)), 6)
        said: dict[str, Any] = {"subscribed_topic_names": self.topics, "rebalance_timeout_ms": 10_000}
        return await self.beat(version, member_epoch=0, topic_partitions=(), **said | more)

    async def confirm(self) -> Any:
        return await self.beat(topic_partitions=self.has)

    async def beat(self, version: int = 1, **more: Any) -> Any:
        said: dict[str, Any] = {"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch} | more
        return self.take(await self.served.call(ConsumerGroupHeartbeatRequest(**said), version))
