"""ListGroups, DescribeGroups and DeleteGroups in every version; and the topic __consumer_offsets."""

from typing import Any

from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.delete_groups import DeleteGroupsRequest
from tailrace.wire.messages.describe_groups import DescribeGroupsRequest
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.list_groups import ListGroupsRequest
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tailrace.wire.messages.offset_delete import OffsetDeleteRequest
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.grouped import SETTINGS, members
from tests.unit.doors.kafka.handlers.groups.test_offsets import commit
from tests.unit.doors.kafka.served import Served, versions, with_broker


@with_broker(**SETTINGS)
async def test_every_version_lists_groups(served: Served) -> None:
    await served.make_topic("t")
    async with members(served, 1, "h") as (one,):
        await one.begin()
        assert await commit(served, 1) == 0
        for version in versions(16):
            listed = await served.call(ListGroupsRequest(), version)
            found = sorted((one.group_id, one.protocol_type, one.group_state, one.group_type) for one in listed.groups)
            kind, states = "classic" if version >= 5 else "", ("Empty", "Stable") if version >= 4 else ("", "")
            assert found == [("g", "", states[0], kind), ("h", "consumer", states[1], kind)]
        for wanted, ids in (("stable", ["h"]), ("Empty", ["g"]), ("Dead", [])):
            some = await served.call(ListGroupsRequest(states_filter=(wanted,)), 5)
            assert [one.group_id for one in some.groups] == ids
        assert (await served.call(ListGroupsRequest(types_filter=("consumer",)), 5)).groups == ()
        assert len((await served.call(ListGroupsRequest(types_filter=("Classic",)), 5)).groups) == 2


@with_broker(**SETTINGS)
async def test_every_version_describes_a_group(served: Served) -> None:
    async with members(served, 1) as (one,):
        one.instance_id = "i"
        await one.begin()
        for version in versions(15):
            request = DescribeGroupsRequest(groups=("g", "never"), include_authorized_operations=version >= 3)
            shown, never = (await served.call(request, version)).groups
            assert (shown.error_code, shown.group_state, shown.protocol_data) == (0, "Stable", "range")
            (member,) = shown.members
            assert (member.member_id, member.client_id, member.client_host) == (one.id, "me", "/127.0.0.1")
            assert (member.member_assignment, bool(member.member_metadata)) == (b"all", True)
            assert member.group_instance_id == ("i" if version >= 4 else None)
            assert never.group_state == "Dead"
            assert never.error_code == (Error.GROUP_ID_NOT_FOUND if version >= 6 else 0)


@with_broker(**SETTINGS)
async def test_every_version_deletes_groups_that_nobody_is_in(served: Served) -> None:
    await served.make_topic("t")
    for version in versions(42):
        async with members(served, 1, "h") as (one,):
            await one.begin()
            assert await commit(served, 1) == 0
            answer = await served.call(DeleteGroupsRequest(groups_names=("g", "h", "never", "")), version)
            assert [two.error_code for two in answer.results] == [
                0,
                Error.NON_EMPTY_GROUP,
                Error.GROUP_ID_NOT_FOUND,
                Error.GROUP_ID_NOT_FOUND,
            ]
            await one.leave()
            assert (await served.call(DeleteGroupsRequest(groups_names=("h",)), version)).results[0].error_code == 0


@with_broker(**SETTINGS)
async def test_a_group_without_a_name_that_has_offsets_is_described_and_deleted(served: Served) -> None:
    await served.make_topic("t")
    await served.call(FindCoordinatorRequest(coordinator_keys=("",)), 6)
    for version, never in ((5, 0), (6, Error.GROUP_ID_NOT_FOUND)):
        assert await commit(served, 1, group="") == 0
        (shown,) = (await served.call(DescribeGroupsRequest(groups=("",)), version)).groups
        assert (shown.error_code, shown.group_id, shown.group_state) == (0, "", "Empty")
        (gone,) = (await served.call(DeleteGroupsRequest(groups_names=("",)), 2)).results
        assert (gone.error_code, (await served.call(ListGroupsRequest(), 5)).groups) == (0, ())
        (shown,) = (await served.call(DescribeGroupsRequest(groups=("",)), version)).groups
        assert (shown.error_code, shown.group_state) == (never, "Dead")
    one = await served.call(ConsumerGroupDescribeRequest(group_ids=("",), include_authorized_operations=False), 1)
    assert one.groups[0].error_code == Error.INVALID_GROUP_ID
    assert (await served.call(OffsetDeleteRequest(group_id="", topics=()), 0)).error_code == Error.INVALID_GROUP_ID


async def described(served: Served) -> Any:
    return (await served.call(MetadataRequest(topics=(TopicWanted(name=OFFSETS_TOPIC),)), 12)).topics[0]


@with_broker(**SETTINGS, offsets_topic_num_partitions=3, auto_create_topics_enable=False)
async def test_the_topic_is_made_at_first_need_and_is_the_brokers_own(served: Served) -> None:
    assert (await described(served)).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    async with members(served, 1):
        topic = await described(served)
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 3)
    own = served.node.hosted.image.topics[OFFSETS_TOPIC].settings
    assert (own["retention.ms"], own["retention.bytes"]) == ("-1", "-1")
    batch = bytes(build_batch([NewRecord(value=b"v", timestamp=1)]))
    data = TopicToProduce(name=OFFSETS_TOPIC, partitions=(PartitionToProduce(partition=0, records=batch),))
    produced = await served.call(ProduceRequest(acks=-1, timeout_ms=5000, topics=(data,)), 9)
    assert produced.topics[0].partitions[0].error_code == Error.INVALID_TOPIC_EXCEPTION
    grown = CreatePartitionsRequest(topics=(TopicToGrow(name=OFFSETS_TOPIC, count=4),), timeout_ms=5000)
    assert (await served.call(grown, 3)).results[0].error_code == Error.INVALID_TOPIC_EXCEPTION
