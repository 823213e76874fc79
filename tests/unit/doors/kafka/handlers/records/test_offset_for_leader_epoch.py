"""OffsetForLeaderEpoch: end offsets of leader epochs, across restarts with and without writes."""

import asyncio
from pathlib import Path

from tailrace.wire.errors import Error
from tailrace.wire.messages.offset_for_leader_epoch import (
    EpochEnd,
    OffsetForLeaderEpochRequest,
    PartitionAsked,
    TopicAsked,
)
from tests.unit.doors.kafka.served import Served, serving, versions, with_broker


async def end_of(
    served: Served, epoch: int, *, version: int = 4, topic: str = "t", partition: int = 0, current: int = -1
) -> EpochEnd:
    asked = PartitionAsked(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(TopicAsked(name=topic, partitions=(asked,)),))
    answer = await served.call(request, version)
    found: EpochEnd = answer.topics[0].partitions[0]
    return found


def test_across_restarts(tmp_path: Path) -> None:
    async def live(*batches: int) -> None:
        async with serving(tmp_path) as served:
            for count in batches:
                await served.produce("t", *[1000] * count)

    async def begin() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t")
            await served.produce("t", 1000, 1000)

    async def look() -> list[tuple[int, int]]:
        async with serving(tmp_path) as served:
            ends = [await end_of(served, epoch) for epoch in range(-1, 6)]
            return [(one.leader_epoch, one.end_offset) for one in ends]

    asyncio.run(begin())  # epoch 0 wrote two
    asyncio.run(live())  # epoch 1 wrote nothing
    asyncio.run(live(3))  # epoch 2 wrote three
    asyncio.run(live())  # epoch 3 wrote nothing
    unknown = (-1, -1)
    assert asyncio.run(look()) == [unknown, (0, 2), (0, 2), (2, 5), (2, 5), (4, 5), unknown]  # epoch 4 leads


@with_broker()
async def test_an_empty_log_knows_its_leader(served: Served) -> None:
    await served.make_topic("t")
    for version in versions(23):
        found = await end_of(served, 0, version=version)
        assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 0)


@with_broker()
async def test_refusals(served: Served) -> None:
    await served.make_topic("t")
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    for found, error in (
        (await end_of(served, 0, topic="never"), unknown),
        (await end_of(served, 0, partition=1), unknown),
        (await end_of(served, 0, current=1), Error.UNKNOWN_LEADER_EPOCH),
    ):
        assert (found.error_code, found.leader_epoch, found.end_offset) == (error, -1, -1)
