"""ConsumerGroupHeartbeat and ConsumerGroupDescribe over the wire, and consumer groups in other requests."""

from unittest.mock import patch

from tailrace.broker.services import time_slices
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.wire.errors import Error
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.delete_groups import DeleteGroupsRequest
from tailrace.wire.messages.describe_groups import DescribeGroupsRequest
from tailrace.wire.messages.list_groups import ListGroupsRequest
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from tailrace.wire.messages.offset_fetch import GroupTopicWanted, GroupWanted, OffsetFetchRequest
from tests.unit.doors.kafka.consumers import Consumer
from tests.unit.doors.kafka.grouped import SETTINGS, members
from tests.unit.doors.kafka.served import Served, versions, with_broker


@with_broker(**SETTINGS)
async def test_two_members_share_a_topic_and_one_leaves(served: Served) -> None:
    await served.make_topic("t", 4)
    one, two = Consumer(served, "one", "t"), Consumer(served, "two", "t")
    joined = await one.join()
    assert (joined.member_id, joined.member_epoch, one.partitions) == ("one", 1, [0, 1, 2, 3])
    assert joined.heartbeat_interval_ms == 5000
    await two.join()
    assert two.partitions == []
    await one.beat()
    assert one.partitions == [0, 1]
    await one.confirm()
    await two.beat()
    assert (two.partitions, two.epoch, one.epoch) == ([2, 3], 2, 2)
    await one.beat(member_epoch=-1)
    await two.beat()
    assert two.partitions == [0, 1, 2, 3]


@with_broker(**SETTINGS)
async def test_a_member_is_given_an_id_in_version_0_only(served: Served) -> None:
    await served.make_topic("t")
    assert (await Consumer(served, "", "t").join(1)).error_code == Error.INVALID_REQUEST
    given = Consumer(served, "", "t")
    assert (await given.join(0)).error_code == 0
    assert given.id
    assert (await Consumer(served, "x", "t", group="").join()).error_code == Error.INVALID_REQUEST


@with_broker(**SETTINGS)
async def test_a_topic_grows_and_its_readers_hear_of_it(served: Served) -> None:
    await served.make_topic("t", 1)
    one = Consumer(served, "one", "t")
    await one.join()
    grow = CreatePartitionsRequest(topics=(TopicToGrow(name="t", count=3),), timeout_ms=5000, validate_only=False)
    assert (await served.call(grow, 3)).results[0].error_code == 0
    await one.beat()
    assert one.partitions == [0, 1, 2]


@with_broker(**SETTINGS)
async def test_others_have_their_turn_while_expressions_are_tried(served: Served) -> None:
    for number in range(10):
        await served.make_topic(f"t{number}")
    one, two, line = Consumer(served, "one"), Consumer(served, "two"), served.door.slices
    with patch.object(time_slices, "SLICE_MAX_S", -1.0), patch.object(line, "wait", wraps=line.wait) as waited:
        await one.join(subscribed_topic_regex="t[0-9]+")
        assert (len(one.partitions), waited.call_count) == (10, 11)  # __consumer_offsets is tried, too
        await one.beat()  # the first after a group is made looks again
        waited.reset_mock()
        await two.join(subscribed_topic_regex="t[1-3]")
        assert waited.call_count == 11
        await served.make_topic("t11")
        await one.beat()
        assert waited.call_count == 13  # one topic, two expressions
        await one.beat()
        assert waited.call_count == 13
        bad = await Consumer(served, "three").join(subscribed_topic_regex="(")
        assert (bad.error_code, waited.call_count) == (Error.INVALID_REGULAR_EXPRESSION, 13)
    coordinator = served.node.coordinators.groups.local("g")
    assert coordinator.names_to_match("g", None, {}) == {}
    group = await coordinator.ask(lambda machine: machine.find_kind("g", ConsumerGroup))
    assert group.expressions == {
        "t[0-9]+": ("t0", "t1", "t11", *(f"t{number}" for number in range(2, 10))),
        "t[1-3]": ("t1", "t2", "t3"),
    }


@with_broker(**SETTINGS)
async def test_a_regular_expression_and_one_that_is_none(served: Served) -> None:
    await served.make_topic("orders")
    await served.make_topic("other", 3)
    one = Consumer(served, "one")
    assert (await one.join(subscribed_topic_names=None, subscribed_topic_regex="ord.*")).error_code == 0
    assert one.partitions == [0]
    bad = await Consumer(served, "two").join(subscribed_topic_names=None, subscribed_topic_regex="ord(")
    assert bad.error_code == Error.INVALID_REGULAR_EXPRESSION
    assert "ord(" in bad.error_message


@with_broker(**SETTINGS)
async def test_a_regular_expression_matches_internal_topics_as_in_kafka(served: Served) -> None:
    await served.make_topic("orders")
    one = Consumer(served, "one")
    await one.join(subscribed_topic_names=None, subscribed_topic_regex=".*")
    await one.beat()
    topics = served.node.hosted.image.topics
    assert {topics[name].id for name in ("orders", OFFSETS_TOPIC)} == {topic.topic_id for topic in one.has}
    await one.beat(subscribed_topic_regex="[^_].*")
    assert {topic.topic_id for topic in one.has} == {topics["orders"].id}


@with_broker(**SETTINGS)
async def test_every_version_describes_a_consumer_group(served: Served) -> None:
    await served.make_topic("t", 2)
    one = Consumer(served, "one", "t")
    await one.join(instance_id="i", rack_id="r")
    for version in versions(69):
        request = ConsumerGroupDescribeRequest(group_ids=("g", "never"), include_authorized_operations=True)
        shown, never = (await served.call(request, version)).groups
        assert (shown.group_state, shown.group_epoch, shown.assignment_epoch) == ("Stable", 1, 1)
        assert shown.assignor_name == "uniform"
        (member,) = shown.members
        assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("one", "i", "r", 1)
        assert (member.client_host, member.subscribed_topic_names) == ("/127.0.0.1", ("t",))
        (topic,) = member.assignment.topic_partitions
        assert (topic.topic_name, topic.partitions) == ("t", (0, 1))
        assert member.target_assignment == member.assignment
        assert member.member_type == (1 if version >= 1 else -1)
        assert never.error_code == Error.GROUP_ID_NOT_FOUND


@with_broker(**SETTINGS)
async def test_each_kind_is_listed_as_such_and_described_by_its_own_request(served: Served) -> None:
    await served.make_topic("t")
    async with members(served, 1, "old") as (member,):
        await member.begin()
        await Consumer(served, "one", "t").join()
        listed = (await served.call(ListGroupsRequest(), 5)).groups
        assert sorted((one.group_id, one.group_type) for one in listed) == [("g", "consumer"), ("old", "classic")]
        (only,) = (await served.call(ListGroupsRequest(types_filter=("Consumer",)), 5)).groups
        assert (only.group_id, only.group_state, only.protocol_type) == ("g", "Stable", "consumer")
        (shown,) = (await served.call(DescribeGroupsRequest(groups=("g",)), 6)).groups
        assert (shown.error_code, shown.group_state) == (Error.GROUP_ID_NOT_FOUND, "Dead")
        (shown,) = (await served.call(DescribeGroupsRequest(groups=("g",)), 5)).groups
        assert (shown.error_code, shown.group_state) == (0, "Dead")
        request = ConsumerGroupDescribeRequest(group_ids=("old",), include_authorized_operations=False)
        assert (await served.call(request, 1)).groups[0].error_code == Error.GROUP_ID_NOT_FOUND


@with_broker(**SETTINGS)
async def test_offsets_are_committed_and_read_in_the_members_epoch(served: Served) -> None:
    await served.make_topic("t")
    one = Consumer(served, "one", "t")
    await one.join()

    async def commit(epoch: int, version: int = 9, member_id: str = "one") -> int:
        topics = (TopicToCommit(name="t", partitions=(_committed,)),)
        request = OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=epoch, member_id=member_id, topics=topics
        )
        error: int = (await served.call(request, version)).topics[0].partitions[0].error_code
        return error

    async def read(epoch: int, member_id: str | None) -> tuple[int, int]:
        wanted = GroupWanted(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            topics=(GroupTopicWanted(name="t", partition_indexes=(0,)),),
        )
        (group,) = (await served.call(OffsetFetchRequest(groups=(wanted,)), 9)).groups
        return group.error_code, group.topics[0].partitions[0].committed_offset if group.topics else -1

    assert await commit(1) == 0
    assert await commit(2) == Error.STALE_MEMBER_EPOCH
    assert await commit(1, member_id="two") == Error.UNKNOWN_MEMBER_ID
    assert await commit(1, version=8) == Error.UNSUPPORTED_VERSION
    assert await read(1, "one") == (0, 7)
    assert await read(-1, None) == (0, 7)
    assert await read(0, "one") == (Error.STALE_MEMBER_EPOCH, -1)
    assert await read(1, "two") == (Error.UNKNOWN_MEMBER_ID, -1)


_committed = PartitionToCommit(partition=0, committed_offset=7, committed_metadata=None)


@with_broker(**SETTINGS)
async def test_a_name_goes_to_the_other_kind_when_nobody_is_in_the_group(served: Served) -> None:
    await served.make_topic("t")
    one = Consumer(served, "one", "t")
    await one.join()
    (deleted,) = (await served.call(DeleteGroupsRequest(groups_names=("g",)), 2)).results
    assert deleted.error_code == Error.NON_EMPTY_GROUP
    await one.beat(member_epoch=-1)
    async with members(served, 1) as (member,):
        await member.begin()
        (group,) = (await served.call(ListGroupsRequest(), 5)).groups
        assert group.group_type == "classic"
        await member.leave()
        again = Consumer(served, "two", "t")
        assert (await again.join()).error_code == 0
        (group,) = (await served.call(ListGroupsRequest(), 5)).groups
        assert group.group_type == "consumer"
        await again.beat(member_epoch=-1)
    (deleted,) = (await served.call(DeleteGroupsRequest(groups_names=("g",)), 2)).results
    assert deleted.error_code == 0
    assert (await served.call(ListGroupsRequest(), 5)).groups == ()


@with_broker(**SETTINGS)
async def test_clients_are_told_that_the_cluster_has_these_groups(served: Served) -> None:
    answer = await served.call(ApiVersionsRequest(), 4)
    levels = {one.name: (one.min_version_level, one.max_version_level) for one in answer.finalized_features}
    assert levels["group.version"] == (1, 1)
    assert levels["transaction.version"] == (2, 2)
