"""DescribeProducers: the active producers of partitions that this broker leads, with their open transactions."""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import partitions_once
from tailrace.model.faults import Fault
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionProducers,
    ProducerState,
    TopicProducers,
)


async def describe_producers(request: DescribeProducersRequest, call: Call) -> DescribeProducersResponse:
    named = partitions_once(((one.name, one.partitions) for one in request.topics), PARTITIONS_PER_REQUEST_MAX)
    return DescribeProducersResponse(
        topics=tuple(
            TopicProducers(name=name, partitions=tuple(_describe(call, name, number) for number in numbers))
            for name, numbers in named.items()
        )
    )


def _describe(call: Call, topic: str, number: int) -> PartitionProducers:
    try:
        producers = tuple(
            ProducerState(
                producer_id=one.producer_id,
                producer_epoch=one.epoch,
                last_sequence=one.last_sequence,
                last_timestamp=one.last_timestamp_ms,
                coordinator_epoch=one.coordinator_epoch,
                current_txn_start_offset=one.transaction_start,
            )
            for one in call.services.reader.producers(call.caller, topic, number)
        )
    except Fault as fault:
        return PartitionProducers(partition=number, error_code=error_of(fault), error_message=str(fault))
    return PartitionProducers(partition=number, active_producers=producers)
