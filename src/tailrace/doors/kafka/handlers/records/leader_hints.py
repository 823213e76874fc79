"""Who leads instead: what Produce and Fetch tell a client that asked in vain (KIP-951), so that it needs no Metadata.

The hint is the newest that this broker knows, from its own replica or from what leaders have reported. It is left out
when that is known to be over: a client would come back from there.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.model.faults import Fault, FencedLeaderEpoch, NotLeader
from tailrace.model.ids import NO_EPOCH, NOBODY, BrokerId, Epoch, Id
from tailrace.wire.hot import Endpoint

if TYPE_CHECKING:
    from tailrace.broker.node import Node

Hint = tuple[BrokerId, Epoch]
NO_HINT: Hint = (NOBODY, NO_EPOCH)


def hint_for(node: "Node", topic: str | Id, partition: int, fault: Fault) -> Hint:
    """The leader to name beside a refusal, and its epoch."""
    if not isinstance(fault, NotLeader | FencedLeaderEpoch):
        return NO_HINT
    image = node.hosted.image
    found = image.topics.get(topic) if isinstance(topic, str) else image.topics_by_id.get(topic)
    if found is None or not 0 <= partition < len(found.partitions):
        return NO_HINT
    leader, epoch = node.leaders.hint(found, partition)
    if leader == node.broker_id and isinstance(fault, NotLeader):
        return NO_HINT  # it is about to hand over, or has just been elected
    return leader, epoch


def endpoints_of(node: "Node", leaders: Iterable[int]) -> list[Endpoint]:
    """Where clients reach the leaders that an answer names, each once; -1 names nobody."""
    brokers = node.hosted.image.brokers
    named = dict.fromkeys(BrokerId(one) for one in leaders if one >= 0)
    return [
        Endpoint(known.id, known.host, known.kafka_port, known.rack)
        for one in named
        if (known := brokers.get(one)) is not None
    ]
