"""Which brokers hold a new partition's replicas, its preferred leader first.

Leaders and followers walk round the brokers, one step further for each partition, so that load spreads evenly.
"""

from collections.abc import Sequence

from tailrace.model.faults import InvalidReplicationFactor
from tailrace.model.ids import BrokerId


def place(
    partitions: int, replication_factor: int, brokers: Sequence[BrokerId], first: int
) -> list[tuple[BrokerId, ...]]:
    """Replicas for `partitions` new ones; `first` says where the walk begins."""
    if not 0 < replication_factor <= len(brokers):
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor} cannot be met: it must be from 1 to {len(brokers)}, "
            "the number of brokers"
        )
    count = len(brokers)
    return [
        tuple(brokers[(first + partition + step) % count] for step in range(replication_factor))
        for partition in range(partitions)
    ]
