"""DeleteRecords: the log start offset moves forward, and stays there after a restart."""

import asyncio
from pathlib import Path

from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
    TrimmedPartition,
)
from tests.unit.doors.kafka.served import Served, serving, versions, with_broker


async def trim(
    served: Served, offset: int, *, version: int = 2, topic: str = "t", partition: int = 0
) -> TrimmedPartition:
    wanted = TopicToTrim(name=topic, partitions=(PartitionToTrim(partition=partition, offset=offset),))
    answer = await served.call(DeleteRecordsRequest(topics=(wanted,)), version)
    trimmed: TrimmedPartition = answer.topics[0].partitions[0]
    return trimmed


@with_broker()
async def test_every_version_deletes_records(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", *[1000] * 10)
    log = served.node.hosted.find("t", 0).log
    for version in versions(21):
        trimmed = await trim(served, version + 1, version=version)
        assert (trimmed.error_code, trimmed.low_watermark, log.start) == (0, version + 1, version + 1)
    below = await trim(served, 1)
    assert (below.error_code, below.low_watermark) == (0, 3)
    everything = await trim(served, -1)
    assert (everything.error_code, everything.low_watermark, log.start) == (0, 10, 10)


@with_broker()
async def test_deleting_records_that_are_not_there(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 1000)
    for trimmed, error in (
        (await trim(served, 2), Error.OFFSET_OUT_OF_RANGE),
        (await trim(served, -2), Error.OFFSET_OUT_OF_RANGE),
        (await trim(served, 0, partition=1), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (await trim(served, 0, topic="never"), Error.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        assert (trimmed.error_code, trimmed.low_watermark) == (error, -1)
    assert served.node.hosted.find("t", 0).log.start == 0


@with_broker()
async def test_each_partition_of_a_request_is_answered_in_its_place(served: Served) -> None:
    await served.make_topic("a", 2)
    await served.make_topic("b")
    await served.produce("a", 1000, 1000, partition=1)
    wanted = (
        TopicToTrim(
            name="a",
            partitions=(PartitionToTrim(partition=1, offset=1), PartitionToTrim(partition=0, offset=1)),
        ),
        TopicToTrim(name="b", partitions=(PartitionToTrim(partition=0, offset=-1),)),
    )
    answer = await served.call(DeleteRecordsRequest(topics=wanted), 2)
    assert [
        (topic.name, [(one.partition, one.low_watermark, one.error_code) for one in topic.partitions])
        for topic in answer.topics
    ] == [("a", [(1, 1, 0), (0, -1, Error.OFFSET_OUT_OF_RANGE)]), ("b", [(0, 0, 0)])]


def test_a_start_that_was_moved_stays_after_a_restart(tmp_path: Path) -> None:
    async def first() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t")
            await served.produce("t", *[1000] * 4)
            await trim(served, 3)

    async def second() -> tuple[int, int]:
        async with serving(tmp_path) as served:
            log = served.node.hosted.find("t", 0).log
            return log.start, log.end

    asyncio.run(first())
    assert asyncio.run(second()) == (3, 4)
