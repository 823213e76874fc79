"""Fetching from the closest replica (KIP-392): the leader redirects a consumer to a follower in the consumer's rack.

The follower must be in sync, not fenced, have fetched recently and have the requested offset; of several the one with
the highest log end is chosen. The consumer returns to the leader when the follower refuses it.
"""

from collections.abc import Mapping

from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.brokers import Broker
from tailrace.model.ids import BrokerId


def nearer_replica(
    partition: Partition, brokers: Mapping[BrokerId, Broker], rack: str, offset: int, now: float
) -> BrokerId | None:
    """The follower from which a consumer in `rack` should fetch `offset`; None: from this broker, the leader."""
    here = brokers.get(partition.me.broker)
    if here is None or here.rack == rack or not partition.log.start <= offset <= partition.high_watermark:
        return None
    in_sync = partition.replica.in_sync(now)
    silent_since = now - partition.replica.timing.fetch_timeout_s
    nearest, most = None, offset - 1
    for peer in partition.replica.peers():
        broker = brokers.get(peer.replica.broker)
        if broker is None or broker.fenced or broker.rack != rack or peer.replica not in in_sync:
            continue
        if peer.fetched >= silent_since and peer.end > most:
            nearest, most = broker.id, peer.end
    return nearest
