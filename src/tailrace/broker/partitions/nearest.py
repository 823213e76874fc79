"""Reading from the nearest replica (KIP-392): a consumer that says in which rack it stands reads there if it can.

A leader in another rack names a follower in the consumer's own: one that is in sync, is not fenced, has fetched lately
and holds the offset that is asked for; of several the one that has most. The consumer goes there, and comes back when
it is refused. A leader that does not lead sends nobody anywhere.
"""

from collections.abc import Mapping

from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.brokers import Broker
from tailrace.model.ids import BrokerId


def nearer_replica(
    partition: Partition, brokers: Mapping[BrokerId, Broker], rack: str, offset: int, now: float
) -> BrokerId | None:
    """Who should be asked for `offset` by a consumer in `rack`; None: this broker, the leader."""
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
