"""Requests with duplicate entries or too many entries: the response stays small, or the connection is closed."""

from collections.abc import Iterator
from typing import Any

from tailrace.model.limits import (
    NAMES_PER_REQUEST_MAX,
    PARTITIONS_PER_REQUEST_MAX,
    REQUEST_ELEMENTS_MAX,
    RESOURCES_PER_REQUEST_MAX,
)
from tailrace.wire.errors import Error
from tailrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TopicToAdd
from tailrace.wire.messages.alter_configs import AlterConfigsRequest, NewConfig, ResourceToAlter
from tailrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.delete_groups import DeleteGroupsRequest
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked
from tailrace.wire.messages.describe_groups import DescribeGroupsRequest
from tailrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tailrace.wire.messages.describe_producers import DescribeProducersRequest, TopicAskedFor
from tailrace.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionToDescribe, TopicToDescribe
from tailrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from tailrace.wire.messages.elect_leaders import ElectLeadersRequest
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeavingMember
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.messages.metadata import TopicWanted as TopicOfInterest
from tailrace.wire.messages.named_topics import TopicPartitions
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from tailrace.wire.messages.offset_delete import OffsetDeleteRequest, PartitionToForget, TopicToForget
from tailrace.wire.messages.offset_fetch import GroupTopicWanted, GroupWanted, OffsetFetchRequest, TopicWanted
from tailrace.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tailrace.wire.messages.offset_for_leader_epoch import PartitionAsked as EpochAsked
from tailrace.wire.messages.offset_for_leader_epoch import TopicAsked as TopicEpochAsked
from tailrace.wire.messages.write_txn_markers import MarkerToWrite, TopicToMark, WriteTxnMarkersRequest
from tests.unit.doors.kafka.hostile import Raw, framed, heard
from tests.unit.doors.kafka.served import Served, with_broker

AGAIN = 50
MARKER: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "committed": False, "coordinator_epoch": 0}
TOPIC_KIND, GROUP_KIND = 2, 32


@with_broker()
async def test_a_partition_is_described_once_however_often_it_is_named(served: Served) -> None:
    await served.make_topic("t", 2)
    await served.call(FindCoordinatorRequest(key="g"), 3)
    for request, version in (
        (DescribeProducersRequest(topics=(TopicAskedFor(name="t", partitions=(0, 1, 0)),) * AGAIN), 0),
        (DescribeLogDirsRequest(topics=(TopicPartitions(name="t", partitions=(0, 1, 0)),) * AGAIN), 4),
        (ElectLeadersRequest(topics=(TopicPartitions(name="t", partitions=(0, 1, 0)),) * AGAIN, timeout_ms=1000), 2),
        (OffsetFetchRequest(topics=(TopicWanted(name="t", partition_indexes=(0, 1, 0)),) * AGAIN, group_id="g"), 7),
    ):
        assert named_in(await served.call(request, version)) == {"t": [0, 1]}, type(request)
    wanted = GroupTopicWanted(name="t", partition_indexes=(0, 1, 0))
    fetched = await served.call(OffsetFetchRequest(groups=(GroupWanted(group_id="g", topics=(wanted,) * AGAIN),)), 8)
    assert named_in(fetched.groups[0]) == {"t": [0, 1]}
    topics = (TopicToMark(name="t", partitions=(0, 1, 0)),) * AGAIN
    written = await served.call(WriteTxnMarkersRequest(markers=(MarkerToWrite(topics=topics, **MARKER),)), 1)
    assert named_in(written.markers[0]) == {"t": [0, 1]}
    metadata = TopicToDescribe(name="__cluster_metadata", partitions=(PartitionToDescribe(partition=0),) * AGAIN)
    quorum = await served.call(DescribeQuorumRequest(topics=(metadata,) * AGAIN), 2)
    assert named_in(quorum) == {"__cluster_metadata": [0]}


def named_in(answer: Any) -> dict[str, list[int]]:
    topics = answer.results[0].topics if hasattr(answer, "results") else answer.topics
    named = {topic.name: [one.partition for one in topic.partitions] for topic in topics}
    assert len(named) == len(topics)
    return named


@with_broker()
async def test_a_group_or_an_id_is_described_once_however_often_it_is_named(served: Served) -> None:
    names = ("a", "b", "a") * AGAIN
    for request, version, answers in (
        (DescribeGroupsRequest(groups=names), 5, "groups"),
        (ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False), 1, "groups"),
        (DeleteGroupsRequest(groups_names=names), 2, "results"),
        (DescribeTransactionsRequest(transactional_ids=names), 0, "transaction_states"),
        (FindCoordinatorRequest(coordinator_keys=names), 4, "coordinators"),
    ):
        assert len(getattr(await served.call(request, version), answers)) == 2, type(request)


@with_broker()
async def test_what_may_be_asked_for_in_different_ways_is_refused_when_named_twice(served: Served) -> None:
    await served.make_topic("t")
    await served.call(FindCoordinatorRequest(key="a"), 3)
    wanted = tuple(GroupWanted(group_id=name, topics=None) for name in ("a", "b", "a"))
    fetched = await served.call(OffsetFetchRequest(groups=wanted), 8)
    bad = Error.INVALID_REQUEST
    assert [one.error_code for one in fetched.groups] == [bad, 0, bad]
    asked = [(TOPIC_KIND, "t"), (GROUP_KIND, "t"), (TOPIC_KIND, "t")]
    resources = tuple(ResourceAsked(resource_type=kind, resource_name=name) for kind, name in asked)
    described = await served.call(DescribeConfigsRequest(resources=resources), 4)
    assert [one.error_code for one in described.results] == [bad, 0, bad]
    assert [bool(one.configs) for one in described.results] == [False, True, False]


def too_many_to_write(numbers: tuple[int, ...]) -> Iterator[tuple[object, int]]:
    topics = (TopicToAdd(name="t", partitions=numbers),)
    yield AddPartitionsToTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0, topics=topics), 3
    commits = [PartitionToCommit(partition=one, committed_offset=1, committed_metadata="") for one in numbers]
    yield OffsetCommitRequest(group_id="g", topics=(TopicToCommit(name="t", partitions=tuple(commits)),)), 8


def too_many() -> Iterator[tuple[object, int]]:
    """Requests with one entry more than allowed, without duplicates."""
    numbers = tuple(range(PARTITIONS_PER_REQUEST_MAX + 1))
    yield DescribeProducersRequest(topics=(TopicAskedFor(name="t", partitions=numbers),)), 0
    yield ElectLeadersRequest(topics=(TopicPartitions(name="t", partitions=numbers),)), 2
    trims = tuple(PartitionToTrim(partition=number, offset=0) for number in numbers)
    yield DeleteRecordsRequest(topics=(TopicToTrim(name="t", partitions=trims),)), 2
    halves = (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :])
    marks = [(TopicToMark(name="t", partitions=half),) for half in halves]
    yield WriteTxnMarkersRequest(markers=tuple(MarkerToWrite(topics=topics, **MARKER) for topics in marks)), 1
    kinds = [(GROUP_KIND, str(number)) for number in range(RESOURCES_PER_REQUEST_MAX + 1)]
    resources = tuple(ResourceAsked(resource_type=kind, resource_name=name) for kind, name in kinds)
    yield DescribeConfigsRequest(resources=resources), 4

    numbers = tuple(range(NAMES_PER_REQUEST_MAX + 1))
    yield OffsetFetchRequest(group_id="g", topics=(TopicWanted(name="t", partition_indexes=numbers),)), 7
    wanted = [(GroupTopicWanted(name="t", partition_indexes=some),) for some in (numbers[:1], numbers[1:])]
    groups = [GroupWanted(group_id=str(number), topics=topics) for number, topics in enumerate(wanted)]
    yield OffsetFetchRequest(groups=tuple(groups)), 8
    forgotten = tuple(PartitionToForget(partition=number) for number in numbers)
    yield OffsetDeleteRequest(group_id="g", topics=(TopicToForget(name="t", partitions=forgotten),)), 0
    offsets = tuple(PartitionAsked(partition=number, timestamp=-1) for number in numbers)
    yield ListOffsetsRequest(topics=(TopicAsked(name="t", partitions=offsets),)), 7
    epochs = tuple(EpochAsked(partition=number, leader_epoch=0) for number in numbers)
    yield OffsetForLeaderEpochRequest(topics=(TopicEpochAsked(name="t", partitions=epochs),)), 4
    yield DescribeLogDirsRequest(topics=(TopicPartitions(name="t", partitions=numbers),)), 4
    yield from too_many_to_write(numbers)
    names = tuple(map(str, numbers))
    yield MetadataRequest(topics=tuple(TopicOfInterest(name=name) for name in names)), 9
    yield DescribeGroupsRequest(groups=names), 5
    yield FindCoordinatorRequest(coordinator_keys=names), 4


@with_broker()
async def test_a_request_with_too_many_names_closes_its_connection_only(served: Served) -> None:
    for request, version in too_many():
        await loses_its_connection(served, request, version, "entries, at most")


async def loses_its_connection(served: Served, request: object, version: int, why: str) -> None:
    with heard() as lines:
        client = await Raw.connect(served.node.kafka_port)
        client.send(framed(request, version))
        assert await client.closed(), type(request)
        client.close()
    (line,) = lines
    assert why in line, type(request)


def too_much() -> Iterator[tuple[object, int]]:
    """Requests whose arrays together have more elements than allowed."""
    names = tuple(str(number) for number in range(REQUEST_ELEMENTS_MAX + 1))
    yield DeleteTopicsRequest(topic_names=names), 5
    topics = tuple(NewTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    yield CreateTopicsRequest(topics=topics), 7
    yield LeaveGroupRequest(group_id="g", members=tuple(LeavingMember(member_id=name) for name in names)), 5
    some = tuple(NewConfig(name=name, value="") for name in names[: REQUEST_ELEMENTS_MAX // 10])
    topic = ResourceToAlter(resource_type=TOPIC_KIND, resource_name="t", configs=some)
    yield AlterConfigsRequest(resources=(topic,) * 10), 2


@with_broker()
async def test_a_request_with_too_many_elements_closes_its_connection_only(served: Served) -> None:
    for request, version in too_much():
        await loses_its_connection(served, request, version, "the arrays of this message have too many elements")


@with_broker()
async def test_a_quorum_that_is_asked_for_too_often_is_refused_in_words(served: Served) -> None:
    """The request may have been forwarded: the connection is that of a broker, and must not be closed."""
    asked = tuple(PartitionToDescribe(partition=number) for number in range(PARTITIONS_PER_REQUEST_MAX + 1))
    answer = await served.call(DescribeQuorumRequest(topics=(TopicToDescribe(name="t", partitions=asked),)), 2)
    assert (answer.error_code, answer.topics) == (Error.INVALID_REQUEST, ())
