"""ListOffsets: earliest, latest, by timestamp, the largest timestamp; and the versions that support them."""

from typing import Any

from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.list_offsets import (
    ListOffsetsRequest,
    PartitionAsked,
    PartitionOffset,
    TopicAsked,
)
from tests.unit.doors.kafka.served import Served, versions, with_broker

LATEST, EARLIEST, LARGEST, LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6


async def look_up(served: Served, version: int, timestamp: int, topic: str = "t", **asked: Any) -> PartitionOffset:
    partition = PartitionAsked(**{"partition": 0, "timestamp": timestamp, **asked})
    request = ListOffsetsRequest(topics=(TopicAsked(name=topic, partitions=(partition,)),))
    answer = await served.call(request, version)
    (found,) = answer.topics[0].partitions
    one: PartitionOffset = found
    return one


@with_broker()
async def test_start_and_end_in_every_version(served: Served) -> None:
    await served.make_topic("t")
    epoch = served.node.hosted.find("t", 0).epoch
    await served.produce("t", 1000, 2000, 3000)
    trim = TopicToTrim(name="t", partitions=(PartitionToTrim(partition=0, offset=1),))
    await served.call(DeleteRecordsRequest(topics=(trim,)), 2)
    for version in versions(2):
        for timestamp, offset in ((EARLIEST, 1), (LATEST, 3)):
            found = await look_up(served, version, timestamp)
            assert (found.error_code, found.offset, found.timestamp) == (0, offset, -1)
            assert found.leader_epoch == (epoch if version >= 4 else -1)


@with_broker()
async def test_an_empty_partition(served: Served) -> None:
    await served.make_topic("t")
    epoch = served.node.hosted.find("t", 0).epoch
    for timestamp, offset, known in ((EARLIEST, 0, epoch), (LATEST, 0, epoch), (LARGEST, -1, -1), (0, -1, -1)):
        found = await look_up(served, 11, timestamp)
        assert (found.error_code, found.offset, found.leader_epoch) == (0, offset, known)


@with_broker()
async def test_by_time_is_exact_to_the_record(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 1000, 2000)
    await served.produce("t", 5000, 4000, 6000)
    for version in (1, 5, 6, 11):
        for timestamp, offset, at in ((0, 0, 1000), (1001, 1, 2000), (2001, 2, 5000), (5001, 4, 6000), (6001, -1, -1)):
            found = await look_up(served, version, timestamp)
            assert (found.error_code, found.offset, found.timestamp) == (0, offset, at)


@with_broker()
async def test_places_and_the_versions_that_know_them(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 9000, 1000)
    for version in versions(2):
        for timestamp, since, offset, at in (
            (LARGEST, 7, 0, 9000),
            (LOCAL, 8, 0, -1),
            (TIERED, 9, -1, -1),
            (PENDING, 11, -1, -1),
            (-7, 100, -1, -1),
        ):
            found = await look_up(served, version, timestamp)
            if version < since:
                assert (found.error_code, found.offset) == (Error.UNSUPPORTED_VERSION, -1)
            else:
                assert (found.error_code, found.offset, found.timestamp) == (0, offset, at)


@with_broker()
async def test_what_is_not_there(served: Served) -> None:
    await served.make_topic("t")
    epoch = served.node.hosted.find("t", 0).epoch
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert (await look_up(served, 11, LATEST, topic="never")).error_code == unknown
    assert (await look_up(served, 11, LATEST, partition=1)).error_code == unknown
    assert (await look_up(served, 11, LATEST, partition=-1)).error_code == unknown
    later = await look_up(served, 11, LATEST, current_leader_epoch=epoch + 1)
    assert (later.error_code, later.offset) == (Error.UNKNOWN_LEADER_EPOCH, -1)
    assert (await look_up(served, 11, LATEST, current_leader_epoch=epoch)).error_code == 0


@with_broker()
async def test_a_partition_named_twice(served: Served) -> None:
    await served.make_topic("t", 2)
    asked = [PartitionAsked(partition=number, timestamp=LATEST) for number in (0, 1, 0)]
    request = ListOffsetsRequest(topics=(TopicAsked(name="t", partitions=tuple(asked)),))
    answer = await served.call(request, 11)
    bad = Error.INVALID_REQUEST
    assert [one.error_code for one in answer.topics[0].partitions] == [bad, 0, bad]
