"""Append a record at most once, by a sequence number that the caller chooses and may use again.

A partition keeps the last sequence number of each producer id. An append with the number that follows is written; with
one that was used before, nothing is written, and the answer has the offset of the record that used it first. So a
repeated append has the outcome of the first one, whoever repeats it, and of several that compete for a number one wins:
`record_at` that offset tells which. Any other number is refused (OUT_OF_ORDER_SEQUENCE_NUMBER).

A partition forgets a producer id that has not written for `producer.id.expiration.ms`, and numbers that are more than
five behind. An id is used with one epoch, 0, and one partition only has its own sequence.
"""

from typing import Any, Final

from tailrace.client.cluster import Cluster, Retry, Unanswered
from tailrace.client.consumer import Received
from tailrace.client.faults import OutcomeUnknown, Refused, Unavailable, check, error_of
from tailrace.client.visible_reading import read_visible
from tailrace.model.ids import PartitionName
from tailrace.model.limits import KiB
from tailrace.records.build import build_batch
from tailrace.records.opened import open_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_producers import DescribeProducersRequest, TopicAskedFor
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

ALL_IN_SYNC: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1
RECORD_READ_BYTES: Final = 4 * KiB  # for one record; of a batch that is larger, brokers return the whole


async def append_sequenced(
    cluster: Cluster, place: PartitionName, record: NewRecord, producer_id: int, sequence: int
) -> int:
    """The offset of the record that has this sequence number; -1 if the partition no longer knows it.

    OutcomeUnknown: no broker answered in time, and one may have written it; the call may be repeated."""
    what = f"write to {place.topic}-{place.partition}"
    batch = build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    request = ProduceRequest(
        acks=ALL_IN_SYNC,
        timeout_ms=int(cluster.limits.request_s * 1000),
        topics=(
            TopicToProduce(
                name=place.topic, partitions=(PartitionToProduce(partition=place.partition, records=batch),)
            ),
        ),
    )
    uncertain = False

    async def attempt() -> int:
        nonlocal uncertain
        address = await cluster.leader(place)
        try:
            response = await cluster.call(address, request)
        except Retry as retry:
            uncertain = uncertain or isinstance(retry, Unanswered)
            cluster.map.forget_leader(place)
            raise
        answer = response.topics[0].partitions[0]
        error = error_of(answer.error_code)
        if error in (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER):
            return int(answer.base_offset)
        if error.retriable:
            uncertain = uncertain or error is not Error.NOT_ENOUGH_REPLICAS
            if not cluster.map.hint(place, answer.current_leader, response.node_endpoints):
                cluster.map.forget_leader(place)
        raise Refused(error, what, answer.error_message)

    try:
        return await cluster.retry(what, attempt)
    except (Unavailable, Refused) as error:
        if uncertain and (isinstance(error, Unavailable) or error.retriable):
            raise OutcomeUnknown(f"{error}; it may be written all the same") from None
        raise


async def last_sequence(cluster: Cluster, place: PartitionName, producer_id: int) -> int | None:
    """The last sequence number of a producer id in this partition; None if it has none, or it was forgotten."""
    what = f"look up a producer of {place.topic}-{place.partition}"

    async def ask() -> int | None:
        request = DescribeProducersRequest(topics=(TopicAskedFor(name=place.topic, partitions=(place.partition,)),))
        address = await cluster.leader(place)
        try:
            response: Any = await cluster.call(address, request)
        except Retry:
            cluster.map.forget_leader(place)
            raise
        found = response.topics[0].partitions[0]
        if found.error_code:
            cluster.map.forget_leader(place)
        check(found.error_code, what, found.error_message)
        return next((one.last_sequence for one in found.active_producers if one.producer_id == producer_id), None)

    return await cluster.retry(what, ask)


async def record_at(cluster: Cluster, place: PartitionName, offset: int) -> Received | None:
    """The committed record at this offset; None if there is none, or it is gone."""
    try:
        visible = await read_visible(cluster, place, offset, RECORD_READ_BYTES)
    except Refused as refused:
        if refused.error is not Error.OFFSET_OUT_OF_RANGE:
            raise
        return None
    if visible is None:
        return None
    for at, header in visible.batches:
        for record in open_batch(visible.data[at : at + header.size]):
            if record.offset == offset:
                return Received(place, *record)
    return None
