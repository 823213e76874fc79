"""Share groups (KIP-932) in a cluster: leaders on other brokers, coordinators that die, and levels without them."""

from collections.abc import Mapping
from typing import Any

from tailrace.cluster.features import FEATURES_OF_0_1_0
from tailrace.model.faults import NotLeader
from tailrace.wire.errors import Error
from tailrace.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from tailrace.wire.messages.delete_groups import DeleteGroupsRequest
from tailrace.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from tailrace.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest, GroupToDescribe
from tailrace.wire.messages.share_group_describe import ShareGroupDescribeRequest
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.unit.broker.groups.test_coordinator import coordinator
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.doors.kafka.share_members import ShareLeaders

FEW: dict[str, Any] = {"offsets_topic_num_partitions": 3, "share_coordinator_state_topic_num_partitions": 3}
NOT_READY = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS)


class Member:
    """A client that sends heartbeats to whichever broker is the coordinator."""

    def __init__(self, brokers: Brokers, *topics: str) -> None:
        self._brokers = brokers
        self._topics = topics
        self.epoch = 0
        self.assigned: Mapping[bytes, tuple[int, ...]] = {}  # by topic id

    async def beat(self) -> Any:
        broker = await coordinator(self._brokers, self._brokers.ids[0])
        names = self._topics if self.epoch == 0 else None
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=self.epoch, subscribed_topic_names=names
        )
        answer = await self._brokers.call(broker, request, 1)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        else:
            assert answer.error_code in NOT_READY, answer.error_message
        return answer

    async def beat_until_it_reads(self, *topics: str) -> None:
        image = self._brokers[self._brokers.ids[0]].hosted.image
        wanted = {image.topics[one].id: (0,) for one in topics}
        for _ in range(100):
            await self.beat()
            if self.assigned == wanted:
                return
            await self._brokers.elapse(0.1)
        raise AssertionError(f"reads {self.assigned} after 10 s, not {wanted}")


async def committed(brokers: Brokers, broker: int, end: int) -> None:
    """Wait until the broker's topic has that many committed records."""
    await brokers.until(lambda: brokers.replica(broker, f"t{broker}").high_watermark >= end)


@simulated(**FEW)
async def test_partitions_are_initialized_by_their_leaders_wherever_they_are(brokers: Brokers) -> None:
    leaders = ShareLeaders(*(brokers[one] for one in brokers.ids))
    for broker in brokers.ids:
        await brokers.make_topic(f"t{broker}", (broker,))
        for _ in range(broker):
            brokers.append(broker, f"t{broker}")
        await committed(brokers, broker, broker)
    member = Member(brokers, "t1", "t2", "t3")
    await member.beat_until_it_reads("t1", "t2", "t3")
    topics = brokers[1].hosted.image.topics
    assert [(broker, place) for broker, place, _, _ in leaders.asked] == [
        (number, (topics[f"t{number}"].id, 0)) for number in brokers.ids
    ]
    for broker in brokers.ids:
        brokers.append(broker, f"t{broker}")
        await committed(brokers, broker, broker + 1)
    request = DescribeShareGroupOffsetsRequest(groups=(GroupToDescribe(group_id="g", topics=None),))
    described = (await brokers.call(await coordinator(brokers, 1), request, 1)).groups[0]
    assert sorted(
        (topic.name, part.start_offset, part.lag) for topic in described.topics for part in topic.partitions
    ) == [("t1", 1, 1), ("t2", 2, 1), ("t3", 3, 1)]


@simulated(**FEW)
async def test_the_next_coordinator_continues_to_initialize(brokers: Brokers) -> None:
    leaders = ShareLeaders(*(brokers[one] for one in brokers.ids))
    leaders.faults = [NotLeader("not now")] * 1000
    await brokers.make_topic("t", (1, 2, 3))
    member = Member(brokers, "t")
    while not (await member.beat()).member_epoch:
        await brokers.elapse(0.1)
    await brokers.until(lambda: len(leaders.asked) >= 2)
    old = await coordinator(brokers, 1)
    asked_before = len(leaders.asked)
    epoch_before = leaders.asked[-1][2]
    brokers.kill(old)
    await brokers.until(lambda: len(leaders.asked) > asked_before)
    leaders.faults.clear()
    await member.beat_until_it_reads("t")
    assert leaders.asked[-1][2] > epoch_before
    assert member.epoch > epoch_before


@simulated(**FEW)
async def test_a_group_is_deleted_at_a_coordinator_that_has_taken_over(brokers: Brokers) -> None:
    ShareLeaders(*(brokers[one] for one in brokers.ids))
    await brokers.make_topic("t", (1, 2, 3))
    member = Member(brokers, "t")
    await member.beat_until_it_reads("t")
    brokers.kill(await coordinator(brokers, 1))
    member.epoch = -1
    while (await member.beat()).error_code:
        await brokers.elapse(0.1)
    request = DeleteGroupsRequest(groups_names=("g",))
    broker = await coordinator(brokers, brokers.ids[0])
    assert (await brokers.call(broker, request, 2)).results[0].error_code == 0


@simulated(count=1, features=FEATURES_OF_0_1_0, **FEW)
async def test_share_groups_are_refused_below_their_level(brokers: Brokers) -> None:
    beat = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=("t",))
    alter = AlterShareGroupOffsetsRequest(group_id="g", topics=())
    delete = DeleteShareGroupOffsetsRequest(group_id="g", topics=())
    describe = ShareGroupDescribeRequest(group_ids=("g",), include_authorized_operations=False)
    offsets = DescribeShareGroupOffsetsRequest(groups=(GroupToDescribe(group_id="g", topics=None),))
    answers = [await brokers.call(1, beat, 1), await brokers.call(1, alter, 0), await brokers.call(1, delete, 0)]
    answers += [(await brokers.call(1, describe, 1)).groups[0], (await brokers.call(1, offsets, 1)).groups[0]]
    for answer in answers:
        assert answer.error_code == Error.UNSUPPORTED_VERSION
        assert "metadata.version 3" in answer.error_message
