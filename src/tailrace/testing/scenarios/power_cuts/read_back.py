"""Reads a partition back with Fetch, and compares it with what was acknowledged to the producers."""

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
    """The broker does not hold what it acknowledged, or answered something that contradicts it."""


@frozen
class PartitionContent:
    """What a consumer reads from a partition, from the offset `since` on."""

    since: int
    records: list[Record]
    control_batches: int
    log_start: int  # in the first response
    high_watermark: int  # in the last response


async def read_partition(client: ReconnectingClient, topic: str, partition: int, since: int) -> PartitionContent | None:
    """All records from `since` on, or from the log's start if that is later.

    None if the broker stopped answering meanwhile, or does not lead the partition.
    """
    records: list[Record] = []
    offset, first, log_start, controls = since, -1, -1, 0
    while True:
        wanted = PartitionToFetch(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_MAX_BYTES)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(TopicToFetch(name=topic, partitions=(wanted,)),))
        response: FetchResponse | None = await client.call(request, FETCH_VERSION)
        if response is None:
            return None
        answer = response.topics[0].partitions[0]
        if answer.error_code == Error.OFFSET_OUT_OF_RANGE:  # trimmed, perhaps just now: read from the new start
            start = await _log_start(client, topic, partition)
            if start is None:
                return None
            if start > offset:
                records.clear()
                offset, first, controls = start, -1, 0
                continue
        if answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
            return None
        if answer.error_code != 0:
            raise GuaranteeViolated(f"{topic}-{partition}: fetch at {offset} got {Error(answer.error_code).name}")
        if first < 0:
            first, log_start = offset, answer.log_start_offset
        if not answer.records:
            if offset != answer.high_watermark:
                raise GuaranteeViolated(
                    f"{topic}-{partition}: fetch at {offset} got no records, but the high watermark is "
                    f"{answer.high_watermark}"
                )
            return PartitionContent(
                since=first,
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


async def _log_start(client: ReconnectingClient, topic: str, partition: int) -> int | None:
    """The log start offset; None if it could not be asked for."""
    asked = PartitionAsked(partition=partition, timestamp=EARLIEST)
    request = ListOffsetsRequest(topics=(TopicAsked(name=topic, partitions=(asked,)),))
    response: ListOffsetsResponse | None = await client.call(request, 8)
    if response is None:
        return None
    answer = response.topics[0].partitions[0]
    return None if answer.error_code == Error.NOT_LEADER_OR_FOLLOWER else answer.offset  # the broker may be stopping


def check_acknowledged(content: PartitionContent, producer: CheckedProducer, acknowledged: Mapping[int, int]) -> None:
    """Check that every acknowledged record is in the log at its offset, in order and once, and nothing unsent is.

    `acknowledged` maps record numbers to offsets, as of the start of the read.
    """
    mine = [record for record in content.records if record.key == producer.name.encode()]
    numbers = [int((record.value or b"").split(b" ", 1)[0]) for record in mine]
    first = numbers[0] if numbers else 0
    if content.since == 0 and first != 0:
        raise GuaranteeViolated(f"{producer.name}: the first record in the log is {first}, not 0")
    if numbers != list(range(first, first + len(numbers))):
        wrong = next(place for place, number in enumerate(numbers) if number != first + place)
        raise GuaranteeViolated(f"{producer.name}: record {numbers[wrong]} is in the place of {first + wrong}")
    if numbers and numbers[-1] >= producer.sent:
        raise GuaranteeViolated(f"{producer.name}: record {numbers[-1]} is in the log, but was never sent")
    for number, offset in acknowledged.items():
        if offset < content.since:
            continue
        if not first <= number < first + len(mine):
            raise GuaranteeViolated(f"{producer.name}: record {number}, acknowledged at {offset}, is lost")
        if mine[number - first].offset != offset:
            raise GuaranteeViolated(
                f"{producer.name}: record {number} is at {mine[number - first].offset}, not {offset}"
            )
