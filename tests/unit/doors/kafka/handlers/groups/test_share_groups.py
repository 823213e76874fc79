"""Share groups (KIP-932) over the wire: members, describing, listing and deleting groups, and their offsets."""

import asyncio
from typing import Any

from tailrace.model.caller import Caller
from tailrace.model.faults import NotLeader
from tailrace.model.ids import Id, PartitionName
from tailrace.queues.state import ShareKey
from tailrace.wire.errors import Error
from tailrace.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    PartitionToAlter,
    TopicToAlter,
)
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.delete_groups import DeleteGroupsRequest
from tailrace.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest, TopicToDelete
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest
from tailrace.wire.messages.delete_topics import TopicToDelete as TopicGone
from tailrace.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    GroupToDescribe,
)
from tailrace.wire.messages.list_groups import ListGroupsRequest
from tailrace.wire.messages.named_topics import TopicPartitions
from tailrace.wire.messages.share_group_describe import ShareGroupDescribeRequest
from tests.unit.doors.kafka.consumers import Consumer
from tests.unit.doors.kafka.served import Served, with_broker
from tests.unit.doors.kafka.share_members import ShareLeaders, ShareMember

LIMIT_S = 10


async def assigned(served: Served, *partitions: int) -> ShareMember:
    """A member that reads t, once it has these partitions."""
    member = ShareMember(served, "one", "t")
    await member.join()
    async with asyncio.timeout(LIMIT_S):
        await member.beat_until(list(partitions))
    return member


async def describe(served: Served, group: str = "g") -> Any:
    request = ShareGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
    return (await served.call(request, 1)).groups[0]


async def offsets(served: Served, *topics: TopicPartitions, group: str = "g", version: int = 1) -> Any:
    wanted = GroupToDescribe(group_id=group, topics=topics or None)
    return (await served.call(DescribeShareGroupOffsetsRequest(groups=(wanted,)), version)).groups[0]


async def listed(served: Served, **filters: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
    found = (await served.call(ListGroupsRequest(**filters), 5)).groups
    return [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in found]


async def alter(served: Served, topic: str, starts: dict[int, int], group: str = "g") -> Any:
    parts = tuple(PartitionToAlter(partition=one, start_offset=start) for one, start in starts.items())
    return await served.call(
        AlterShareGroupOffsetsRequest(group_id=group, topics=(TopicToAlter(name=topic, partitions=parts),)), 0
    )


async def delete_offsets(served: Served, *topics: str, group: str = "g") -> Any:
    named = tuple(TopicToDelete(name=one) for one in topics)
    return await served.call(DeleteShareGroupOffsetsRequest(group_id=group, topics=named), 0)


async def delete_group(served: Served, group: str = "g") -> int:
    code: int = (await served.call(DeleteGroupsRequest(groups_names=(group,)), 2)).results[0].error_code
    return code


async def start_of(served: Served, topic_id: bytes, partition: int) -> int | None:
    state = await served.node.coordinators.share_states.summary(ShareKey("g", Id(topic_id), partition))
    return None if state is None else state.start


@with_broker()
async def test_a_new_group_has_its_partitions_within_two_quick_heartbeats(served: Served) -> None:
    leaders = ShareLeaders(served.node)
    topic_id = await served.make_topic("t", 2)
    await served.produce("t", 1, 2, 3)
    one = ShareMember(served, "one", "t")
    joined = await one.join(rack_id="r")
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("one", 1, 100)
    assert one.partitions == []
    async with asyncio.timeout(LIMIT_S):
        await one.beat_until([0, 1])
    assert (await one.beat()).heartbeat_interval_ms == 5000
    assert leaders.starts == [(0, -1), (1, -1)]
    assert [await start_of(served, topic_id, number) for number in (0, 1)] == [3, 0]
    group = await describe(served)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.assignor_name == "simple"
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch, member.client_host) == ("one", "r", 2, "/127.0.0.1")
    assert [(topic.topic_name, topic.partitions) for topic in member.assignment.topic_partitions] == [("t", (0, 1))]
    assert await listed(served) == [("g", "share", "Stable", "share")]
    assert await listed(served, types_filter=("Share",), states_filter=("stable",)) != []
    assert await listed(served, types_filter=("consumer",)) == []


@with_broker()
async def test_partitions_that_cannot_be_initialized_are_tried_again_with_a_higher_state_epoch(served: Served) -> None:
    leaders = ShareLeaders(served.node)
    leaders.faults = [NotLeader("moving"), NotLeader("moving")]
    await served.make_topic("t")
    await assigned(served, 0)
    epochs = [epoch for _, _, epoch, _ in leaders.asked]
    assert epochs == sorted(set(epochs))
    assert len(epochs) == 3


@with_broker(group_share_initialize_retry_interval_ms=3_600_000)
async def test_new_work_does_not_wait_for_a_retry(served: Served) -> None:
    leaders = ShareLeaders(served.node)
    await served.make_topic("t")
    one = await assigned(served, 0)
    await one.leave()
    leaders.faults = [NotLeader("moving")] * 100
    service, place = served.node.services.share_groups, PartitionName("t", 0)
    altering = asyncio.create_task(service.alter_offsets(Caller(), "g", {place: 1}))
    async with asyncio.timeout(LIMIT_S):
        while len(leaders.asked) < 5:  # noqa: ASYNC110 -- the next attempt is a second away
            await asyncio.sleep(0.01)
    leaders.faults = []
    async with asyncio.timeout(0.5):
        assert (await alter(served, "t", {0: 2})).topics[0].partitions[0].error_code == 0
    assert await altering == {place: None}
    assert (await offsets(served)).topics[0].partitions[0].start_offset == 2


@with_broker()
async def test_one_partition_that_hangs_does_not_hold_up_the_others(served: Served) -> None:
    leaders = ShareLeaders(served.node)
    calls, hangs = served.node.coordinators.leader_calls, asyncio.Event()
    initialize = calls.initialize_here

    async def hang_for_0(group: str, topic_id: Id, partition: int, *arguments: int) -> None:
        if partition == 0:
            await hangs.wait()
        await initialize(group, topic_id, partition, *arguments)

    calls.initialize_here = hang_for_0
    await served.make_topic("t", 3)
    one = ShareMember(served, "one", "t")
    await one.join()
    async with asyncio.timeout(LIMIT_S):
        await one.beat_until([1, 2])
        hangs.set()
        await one.beat_until([0, 1, 2])
    assert leaders.starts == [(1, -1), (2, -1), (0, -1)]


@with_broker()
async def test_a_partition_that_is_added_starts_at_0(served: Served) -> None:
    leaders = ShareLeaders(served.node)
    await served.make_topic("t")
    one = await assigned(served, 0)
    async with asyncio.timeout(LIMIT_S):
        grow = CreatePartitionsRequest(topics=(TopicToGrow(name="t", count=2),), timeout_ms=5000, validate_only=False)
        assert (await served.call(grow, 3)).results[0].error_code == 0
        await one.beat_until([0, 1])
    assert leaders.starts == [(0, -1), (1, 0)]


@with_broker(group_share_session_timeout_ms=300, group_share_heartbeat_interval_ms=100)
async def test_a_member_that_falls_silent_is_removed(served: Served) -> None:
    ShareLeaders(served.node)
    await served.make_topic("t", 2)
    one, two = ShareMember(served, "one", "t"), ShareMember(served, "two", "t")
    await one.join()
    await two.join()
    async with asyncio.timeout(LIMIT_S):
        await two.beat_until([0, 1])
    assert (await one.beat()).error_code == Error.UNKNOWN_MEMBER_ID


@with_broker()
async def test_a_group_is_deleted_with_the_state_of_its_partitions(served: Served) -> None:
    leaders = ShareLeaders(served.node)
    topic_id = await served.make_topic("t")
    one = await assigned(served, 0)
    assert await delete_group(served) == Error.NON_EMPTY_GROUP
    assert await start_of(served, topic_id, 0) == 0
    await one.leave()
    assert (await describe(served)).group_state == "Empty"
    assert await delete_group(served) == 0
    assert await start_of(served, topic_id, 0) is None
    assert await listed(served) == []
    assert (await describe(served)).error_code == Error.GROUP_ID_NOT_FOUND
    assert await delete_group(served) == Error.GROUP_ID_NOT_FOUND
    async with asyncio.timeout(LIMIT_S):
        await one.join()
        await one.beat_until([0])
    assert leaders.starts == [(0, -1), (0, -1)]


@with_broker()
async def test_the_state_of_a_deleted_topic_is_deleted(served: Served) -> None:
    ShareLeaders(served.node)
    topic_id = await served.make_topic("t")
    one = await assigned(served, 0)
    async with asyncio.timeout(LIMIT_S):
        await served.call(DeleteTopicsRequest(topics=(TopicGone(name="t"),), timeout_ms=5000), 6)
        await one.beat_until([])
        coordinator = served.node.coordinators.groups.local("g")
        while await coordinator.ask(lambda machine: machine.find_share_group("g").partitions.names):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        while await start_of(served, topic_id, 0) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await offsets(served)).topics == ()


@with_broker()
async def test_offsets_are_described_altered_and_deleted(served: Served) -> None:
    ShareLeaders(served.node)
    topic_id = await served.make_topic("t", 2)
    await served.make_topic("u")
    await served.produce("t", 1, 2, 3)
    one = await assigned(served, 0, 1)
    await served.produce("t", 4, 5)
    (topic,) = (await offsets(served)).topics
    assert (topic.name, topic.topic_id) == ("t", topic_id)
    assert [(part.partition, part.start_offset, part.lag) for part in topic.partitions] == [(0, 3, 2), (1, 0, 0)]
    assert (await offsets(served, version=0)).topics[0].partitions[0].lag == -1
    assert (await alter(served, "t", {0: 1})).error_code == Error.NON_EMPTY_GROUP
    assert (await delete_offsets(served, "t")).error_code == Error.NON_EMPTY_GROUP
    await one.leave()
    answer = await alter(served, "t", {0: 1, 7: 1, 1: -1})
    assert (answer.error_code, answer.topics[0].topic_id) == (0, topic_id)
    assert {part.partition: part.error_code for part in answer.topics[0].partitions} == {
        0: 0,
        7: Error.UNKNOWN_TOPIC_OR_PARTITION,
        1: Error.INVALID_REQUEST,
    }
    wanted = (TopicPartitions(name="t", partitions=(0, 9)), TopicPartitions(name="u", partitions=(0,)))
    found = {
        (topic.name, part.partition): (part.error_code, part.start_offset, part.lag)
        for topic in (await offsets(served, *wanted)).topics
        for part in topic.partitions
    }
    assert found == {
        ("t", 0): (0, 1, 4),
        ("t", 9): (Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
        ("u", 0): (0, -1, -1),
    }
    deleted = await delete_offsets(served, "t", "u", "never")
    assert [(topic.name, topic.error_code) for topic in deleted.topics] == [
        ("t", 0),
        ("u", 0),
        ("never", Error.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert (await offsets(served)).topics == ()
    assert await start_of(served, topic_id, 0) is None


@with_broker()
async def test_groups_that_do_not_exist_or_are_of_another_kind(served: Served) -> None:
    ShareLeaders(served.node)
    await served.make_topic("t")
    await Consumer(served, "c", "t", group="consumers").join()
    for group in ("consumers", "never"):
        assert (await describe(served, group)).error_code == Error.GROUP_ID_NOT_FOUND
        assert (await offsets(served, group=group)).error_code == Error.GROUP_ID_NOT_FOUND
        assert (await alter(served, "t", {0: 1}, group)).error_code == Error.GROUP_ID_NOT_FOUND
        assert (await delete_offsets(served, "t", group=group)).error_code == Error.GROUP_ID_NOT_FOUND
    assert (await ShareMember(served, "m", "t", group="consumers").join()).error_code == Error.GROUP_ID_NOT_FOUND
    assert (await ShareMember(served, "m", "t").beat(member_epoch=1)).error_code == Error.UNKNOWN_MEMBER_ID
    assert (await ShareMember(served, "m", "t", group="").join()).error_code == Error.INVALID_REQUEST
    assert (await ShareMember(served, "", "t").join()).error_code == Error.INVALID_REQUEST
    assert (await describe(served, "")).error_code == Error.INVALID_GROUP_ID
