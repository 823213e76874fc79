"""`tailrace.client.partition_reading` and other reads of a few records: pieces do not change what is found."""

import pytest

from tailrace.client.batching import BatchLimits
from tailrace.client.partition_reading import PIECE_MIN_BYTES, read_partition
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.client.sequenced import record_at
from tailrace.client.unfinished import Unfinished
from tailrace.model.ids import PartitionName
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient

PARTITION = PartitionName("t", 0)
SIZES = [10, 3 * PIECE_MIN_BYTES, 1, 2000, 50_000, *[100] * 120, 20_000, *[1] * 30]  # of values
ONE_A_BATCH = ProducerOptions(limits=BatchLimits(batch_bytes=1))


def value_of(number: int) -> bytes:
    return b"%d" % (number % 10) * SIZES[number]


async def filled(brokers: Brokers, options: ProducerOptions) -> SimulatedClient:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def fill() -> None:
        async with Producer(found.cluster, options) as producer:
            sent = [await producer.send("t", value_of(number), partition=0) for number in range(len(SIZES))]
            assert [(await one).offset for one in sent] == list(range(len(SIZES)))

    await found.run(fill())
    return found


@pytest.mark.parametrize("options", [ONE_A_BATCH, ProducerOptions()], ids=["a batch each", "large batches"])
def test_as_many_records_are_found_as_are_wanted_and_there(options: ProducerOptions) -> None:
    @simulated(count=1)
    async def check(brokers: Brokers) -> None:
        found = await filled(brokers, options)
        for offset, most in ((0, 1), (0, 2), (0, 7), (1, 1), (3, 200), (5, 100), (5, 130), (0, 1000), (150, 10)):
            read = await found.run(read_partition(found.cluster, PARTITION, offset, max_records=most))
            expected = list(range(offset, min(offset + most, len(SIZES))))
            assert [one.offset for one in read.records] == expected
            assert [one.value for one in read.records] == list(map(value_of, expected))
            assert read.next_offset == (expected[-1] + 1 if expected else offset)

    check()


@simulated(count=1)
async def test_bytes_are_bounded_but_for_the_first_batch(brokers: Brokers) -> None:
    found = await filled(brokers, ONE_A_BATCH)
    for offset, most_bytes, expected in ((0, 1000, 1), (1, 1000, 1), (0, 20_000, 4), (5, 2_000, 11)):
        read = await found.run(read_partition(found.cluster, PARTITION, offset, max_records=1000, max_bytes=most_bytes))
        assert len(read.records) == expected, (offset, most_bytes)
        assert read.next_offset == offset + expected


@simulated(count=1)
async def test_large_records_are_found_by_their_offset(brokers: Brokers) -> None:
    found = await filled(brokers, ProducerOptions())
    for offset in (0, 1, 4, 5, len(SIZES) - 1):
        record = await found.run(record_at(found.cluster, PARTITION, offset))
        assert record is not None
        assert (record.offset, record.value) == (offset, value_of(offset))
    assert await found.run(record_at(found.cluster, PARTITION, len(SIZES))) is None


@simulated(count=1)
async def test_the_first_message_is_found_however_large(brokers: Brokers) -> None:
    found = await filled(brokers, ONE_A_BATCH)
    unfinished = Unfinished(found.cluster)
    first = await found.run(unfinished.first("nobody", [PARTITION]))
    assert first is not None
    assert first.value == value_of(0)
