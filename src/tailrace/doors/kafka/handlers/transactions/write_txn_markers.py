"""WriteTxnMarkers: write transaction markers to partitions that this broker leads. The response is sent when they are
committed.

Brokers use the peer port for this (`broker.transactions.marker_writing`). On this listener it is for administrators who
abort a hanging transaction, one that its coordinator no longer knows.
"""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import partitions_once, require_few, together
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.results import PartitionResult, TopicResults
from tailrace.wire.messages.write_txn_markers import (
    MarkerToWrite,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)


async def write_txn_markers(request: WriteTxnMarkersRequest, call: Call) -> WriteTxnMarkersResponse:
    named = [partitions_once((one.name, one.partitions) for one in marker.topics) for marker in request.markers]
    wanted = [
        (marker, name, number)
        for marker, topics in zip(request.markers, named, strict=True)
        for name, numbers in topics.items()
        for number in numbers
    ]
    require_few(len(wanted), PARTITIONS_PER_REQUEST_MAX)
    answers = iter(await together(wanted, lambda one: _write(call, *one)))
    return WriteTxnMarkersResponse(
        markers=tuple(
            WrittenMarker(
                producer_id=marker.producer_id,
                topics=tuple(
                    TopicResults(name=name, partitions=tuple(next(answers) for _ in numbers))
                    for name, numbers in topics.items()
                ),
            )
            for marker, topics in zip(request.markers, named, strict=True)
        )
    )


async def _write(call: Call, marker: MarkerToWrite, topic: str, number: int) -> PartitionResult:
    fault = await call.services.transactions.write_marker(call.caller, topic, number, marker)
    return PartitionResult(partition=number, error_code=0 if fault is None else error_of(fault))
