"""WriteTxnMarkers: end transactions on partitions that this broker leads; answered when the markers are committed.

Brokers use their own port for this (`broker.marking`). Here it is for administrators, who abort a transaction that no
coordinator knows any more.
"""

import asyncio

from tailrace.broker.marking import marker_timeout_s
from tailrace.doors.kafka.call import Call
from tailrace.wire.messages.write_txn_markers import (
    MarkedPartition,
    MarkedTopic,
    MarkerToWrite,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)


async def write_txn_markers(request: WriteTxnMarkersRequest, call: Call) -> WriteTxnMarkersResponse:
    wanted = [
        (marker, topic.name, number)
        for marker in request.markers
        for topic in marker.topics
        for number in topic.partitions
    ]
    answers = iter(await asyncio.gather(*(_write(call, *one) for one in wanted)))
    return WriteTxnMarkersResponse(
        markers=tuple(
            WrittenMarker(
                producer_id=marker.producer_id,
                topics=tuple(
                    MarkedTopic(name=topic.name, partitions=tuple(next(answers) for _ in topic.partitions))
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


async def _write(call: Call, marker: MarkerToWrite, topic: str, number: int) -> MarkedPartition:
    code = await call.node.marking.write(topic, number, marker, marker_timeout_s)
    return MarkedPartition(partition=number, error_code=code)
