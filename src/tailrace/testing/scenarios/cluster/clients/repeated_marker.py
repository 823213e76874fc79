"""Repeats the marker that ended a producer's last transaction while its next transaction is open.

A coordinator sends a marker until it is acknowledged, and a copy may be in flight for long. With KIP-890 every marker
has a producer epoch of its own, and the producer's next transaction has the same epoch: the repeated marker must not
end it.
"""

from typing import Final

from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicAskedFor,
)
from tailrace.wire.messages.write_txn_markers import MarkerToWrite, TopicToMark, WriteTxnMarkersRequest

DESCRIBE_VERSION: Final = 0
WRITE_VERSION: Final = 2
TRANSACTION_VERSION: Final = 2


async def repeat_marker(router: Router, topic: str, partition: int, producer_id: int, *, committed: bool) -> None:
    """Send the marker as the coordinator would have, with the epochs that the partition's producer state has."""
    place = await router.find(topic, partition)
    if place is None or place.leader is None:
        return
    asked = DescribeProducersRequest(topics=(TopicAskedFor(name=topic, partitions=(partition,)),))
    answer: DescribeProducersResponse | None = await router.call(place.leader, asked, DESCRIBE_VERSION)
    producers = () if answer is None else answer.topics[0].partitions[0].active_producers
    for one in producers:
        if one.producer_id == producer_id and one.coordinator_epoch >= 0:
            marker = MarkerToWrite(
                producer_id=producer_id,
                producer_epoch=one.producer_epoch,
                committed=committed,
                topics=(TopicToMark(name=topic, partitions=(partition,)),),
                coordinator_epoch=one.coordinator_epoch,
                transaction_version=TRANSACTION_VERSION,
            )
            await router.call(place.leader, WriteTxnMarkersRequest(markers=(marker,)), WRITE_VERSION)
