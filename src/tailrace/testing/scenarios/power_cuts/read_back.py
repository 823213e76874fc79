"""Read a partition back through the door, and hold it against what producers were promised."""

from collections.abc import Mapping
from typing import Final

from tailrace.model.frozen import frozen
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import Record
from tailrace.testing.scenarios.power_cuts.producer import CheckedProducer
from tailrace.testing.scenarios.reconnecting_client import ReconnectingClient
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, PartitionAsked, TopicAsked

FETCH_VERSION: Final = 11
FETCH_MAX_BYTES: Final = 64 * 1024
EARLIEST: Final = -2


class GuaranteeViolated(AssertionError):
    """The log does not hold what the broker acknowledged."""


@frozen
class PartitionContent:
    """What a consumer sees of a partition from `since` on."""

    since: int
    records: list[Record]
    control_batches: int
    log_start: int  # when the reading began
    high_watermark: int  # when it ended


async def read_partition(caller: ReconnectingClient, topic: str, partition: int, since: int) -> PartitionContent | None:
    """All records from `since`, or from the log's start where that is later.

    None: the broker went away meanwhile, or does not lead the partition.
    """
    records: list[Record] = []
    offset, begun, log_start, controls = since, -1, -1, 0
    while True:
        wanted = PartitionToFetch(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_MAX_BYTES)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(TopicToFetch(name=topic, partitions=(wanted,)),))
        response: FetchResponse | None = await caller.call(request, FETCH_VERSION)
        if response is None:
            return None
        answer = response.topics[0].partitions[0]
        if answer.error_code == Error.OFFSET_OUT_OF_RANGE:  # it begins later, or does so now: read on from there
            start = await _start(caller, topic, partition)
            if start is None:
                return None
            if start > offset:
                records.clear()
                offset, begun, controls = start, -1, 0
                continue
        if answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
            return None
        if answer.error_code != 0:
            raise GuaranteeViolated(f"{topic}-{partition}: fetch at {offset} got {Error(answer.error_code).name}")
        if begun < 0:
            begun, log_start = offset, answer.log_start_offset
        if not answer.records:
            if offset != answer.high_watermark:
                raise GuaranteeViolated(f"{topic}-{partition}: nothing at {offset} of {answer.high_watermark}")
            return PartitionContent(
                since=begun,
                records=records,
                control_batches=controls,
                log_start=log_start,
                high_watermark=answer.high_watermark,
            )
        for batch, header in batches(answer.records):
            if header.is_control:
                controls += 1
            else:
                records += [record for record in open_batch(batch) if record.offset >= offset]
            offset = header.last_offset + 1


async def _start(caller: ReconnectingClient, topic: str, partition: int) -> int | None:
    asked = PartitionAsked(partition=partition, timestamp=EARLIEST)
    request = ListOffsetsRequest(topics=(TopicAsked(name=topic, partitions=(asked,)),))
    response: ListOffsetsResponse | None = await caller.call(request, 8)
    if response is None:
        return None
    answer = response.topics[0].partitions[0]
    return None if answer.error_code == Error.NOT_LEADER_OR_FOLLOWER else answer.offset  # it may stop just now


def check_acknowledged(history: PartitionContent, producer: CheckedProducer, acknowledged: Mapping[int, int]) -> None:
    """Every acknowledged record is there, where it was said to be, in order and once; nothing is there unsent.

    `acknowledged` is what the producer had been promised when the reading began.
    """
    mine = [record for record in history.records if record.key == producer.name.encode()]
    numbers = [int((record.value or b"").split(b" ", 1)[0]) for record in mine]
    first = numbers[0] if numbers else 0
    if history.since == 0 and first != 0:
        raise GuaranteeViolated(f"{producer.name}: its first record is {first}")
    if numbers != list(range(first, first + len(numbers))):
        wrong = next(place for place, number in enumerate(numbers) if number != first + place)
        raise GuaranteeViolated(f"{producer.name}: record {numbers[wrong]} stands where {first + wrong} should")
    if numbers and numbers[-1] >= producer.promises.sent:
        raise GuaranteeViolated(f"{producer.name}: record {numbers[-1]}, but only {producer.promises.sent} were sent")
    for number, offset in acknowledged.items():
        if offset < history.since:
            continue
        if not first <= number < first + len(mine):
            raise GuaranteeViolated(f"{producer.name}: record {number}, acknowledged at {offset}, is lost")
        if mine[number - first].offset != offset:
            raise GuaranteeViolated(
                f"{producer.name}: record {number} is at {mine[number - first].offset}, not {offset}"
            )
