"""Read a partition back through the door, and hold it against what producers were promised."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tailrace.ports import Net
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import Record
from tailrace.testing.scenarios.producer import RememberingProducer
from tailrace.wire.client import WireClient
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionToFetch, TopicToFetch

fetch_version: Final = 11
fetch_max_bytes: Final = 64 * 1024


class BrokenPromise(AssertionError):
    """The log does not hold what the broker acknowledged."""


@dataclass(frozen=True, slots=True)
class History:
    records: list[Record]
    high_watermark: int


async def read_history(net: Net, host: str, topic: str, partition: int) -> History:
    """All records of a partition that a consumer may see, in the order of the log."""
    client = await WireClient.connect(net, host, 9092, "history")
    records: list[Record] = []
    offset = 0
    try:
        while True:
            wanted = PartitionToFetch(partition=partition, fetch_offset=offset, partition_max_bytes=fetch_max_bytes)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(TopicToFetch(name=topic, partitions=(wanted,)),))
            response: FetchResponse = await client.call(request, fetch_version)
            answer = response.topics[0].partitions[0]
            if answer.error_code != 0:
                raise BrokenPromise(f"{topic}-{partition}: fetch at {offset} got error {answer.error_code}")
            if not answer.records:
                if offset != answer.high_watermark:
                    raise BrokenPromise(f"{topic}-{partition}: nothing at {offset} of {answer.high_watermark}")
                return History(records, answer.high_watermark)
            for batch, header in batches(answer.records):
                if not header.is_control:
                    records += [record for record in open_batch(batch) if record.offset >= offset]
                offset = header.last_offset + 1
    finally:
        client.close()


def check_promises(history: History, producer: RememberingProducer, acknowledged: Mapping[int, int]) -> None:
    """Every acknowledged record is there, where it was said to be, in order and once; nothing is there unsent.

    `acknowledged` is what the producer had been promised when the reading began.
    """
    mine = [record for record in history.records if record.key == producer.name.encode()]
    numbers = [int((record.value or b"").split(b" ", 1)[0]) for record in mine]
    if numbers != list(range(len(numbers))):
        wrong = next(place for place, number in enumerate(numbers) if number != place)
        raise BrokenPromise(f"{producer.name}: record {numbers[wrong]} stands where {wrong} should")
    if len(numbers) > producer.promises.sent:
        raise BrokenPromise(f"{producer.name}: {len(numbers)} records, but only {producer.promises.sent} were sent")
    for number, offset in acknowledged.items():
        if number >= len(mine):
            raise BrokenPromise(f"{producer.name}: record {number}, acknowledged at {offset}, is lost")
        if mine[number].offset != offset:
            raise BrokenPromise(f"{producer.name}: record {number} is at {mine[number].offset}, not at {offset}")
