"""The marker that ended a producer's last transaction comes once more, while the next one is open.

A coordinator sends markers until they are acknowledged, and what it sent may lie in a network for long. By the protocol
of KIP-890 each end has an epoch of its own, which is that of the producer's next transaction: it must not end that one.
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
    """As its coordinator would have sent it, as far as the partition still knows of that."""
    place = await router.find(topic, partition)
    if place is None or place.leader is None:
        return
    asked = DescribeProducersRequest(topics=(TopicAskedFor(name=topic, partitions=(partition,)),))
    answer: DescribeProducersResponse | None = await router.ask(place.leader, asked, DESCRIBE_VERSION)
    known = () if answer is None else answer.topics[0].partitions[0].active_producers
    for one in known:
        if one.producer_id == producer_id and one.coordinator_epoch >= 0:
            marker = MarkerToWrite(
                producer_id=producer_id,
                producer_epoch=one.producer_epoch,
                committed=committed,
                topics=(TopicToMark(name=topic, partitions=(partition,)),),
                coordinator_epoch=one.coordinator_epoch,
                transaction_version=TRANSACTION_VERSION,
            )
            await router.ask(place.leader, WriteTxnMarkersRequest(markers=(marker,)), WRITE_VERSION)
