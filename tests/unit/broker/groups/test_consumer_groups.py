"""Consumer groups (KIP-848) whose coordinators die: a partition never has two owners, and in the end it has one."""

import asyncio
from typing import Any

import pytest

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.model.ids import TopicPartition
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, OwnedTopic
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.unit.broker.simulated import Brokers, simulated

PARTITIONS = 6
SESSION_S = 6.0
FEW: dict[str, Any] = {
    "offsets_topic_num_partitions": 3,
    "group_consumer_session_timeout_ms": int(SESSION_S * 1000),
    "group_consumer_heartbeat_interval_ms": 500,
}
FENCED = (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID)


class Member:
    """A client that follows its assignment at once, and gives up all partitions after a session timeout."""

    def __init__(self, brokers: Brokers, name: str) -> None:
        self._brokers = brokers
        self.name = name
        self.epoch = 0
        self.has: tuple[OwnedTopic, ...] = ()
        self.is_sure = False  # its last request was answered
        self.heard_at = 0.0

    async def beat(self) -> None:
        if self.is_out:
            self.epoch, self.has = 0, ()
        now = self._brokers.world.loop.time()
        says_all = self.epoch == 0 or not self.is_sure
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.name,
            member_epoch=self.epoch,
            rebalance_timeout_ms=10_000 if says_all else -1,
            subscribed_topic_names=("t",) if says_all else None,
            topic_partitions=self.has,
        )
        answer = await self._asked(request)
        self.is_sure = answer is not None and answer.error_code == 0
        if answer is not None and answer.error_code in FENCED:
            self.epoch, self.has = 0, ()
        elif self.is_sure:
            self.epoch, self.heard_at = answer.member_epoch, now
            if answer.assignment is not None:
                self.has = answer.assignment.topic_partitions

    async def _asked(self, request: object) -> Any:
        """None: there is no coordinator, or it fails before it answers."""
        try:
            asked = self._brokers.ids[0]
            async with asyncio.timeout(1.0):
                found = await self._brokers.call(asked, FindCoordinatorRequest(coordinator_keys=("g",)), 6)
                return await self._brokers.call(found.coordinators[0].node_id, request, 1)
        except (OSError, TimeoutError, KeyError):
            return None

    @property
    def is_out(self) -> bool:
        return self._brokers.world.loop.time() - self.heard_at >= SESSION_S

    @property
    def owned(self) -> list[TopicPartition]:
        if self.is_out:
            return []
        return [TopicPartition(topic.topic_id, one) for topic in self.has for one in topic.partitions]


def owners(members: list[Member]) -> dict[TopicPartition, str]:
    found: dict[TopicPartition, str] = {}
    for member in members:
        for one in member.owned:
            assert one not in found, f"{one} belongs to {found[one]} and {member.name}"
            found[one] = member.name
    return found


async def rounds(brokers: Brokers, members: list[Member], count: int) -> None:
    for _ in range(count):
        for member in members:
            await member.beat()
            owners(members)
        await brokers.elapse(0.5)


@pytest.mark.parametrize("after", range(4))
@simulated(**FEW)
async def test_the_coordinator_loses_power_in_the_middle_of_a_rebalance(brokers: Brokers, after: int) -> None:
    topic = NewTopic(name="t", num_partitions=PARTITIONS, replication_factor=3)
    assert (await brokers.call(1, CreateTopicsRequest(topics=(topic,)), 7)).topics[0].error_code == 0
    members = [Member(brokers, "a"), Member(brokers, "b")]
    await rounds(brokers, members[:1], 3)
    await rounds(brokers, members, after)  # so far the second has come
    here = brokers.ids[0]
    leader = brokers[here].hosted.find(OFFSETS_TOPIC, partition_of("g", 3)).leader
    assert leader is not None
    brokers.kill(leader, power_loss=True)
    await rounds(brokers, members, 20)
    assert sorted(one.partition for one in owners(members)) == list(range(PARTITIONS))
    assert [len(member.owned) for member in members] == [3, 3]
