"""Which partition a producer gives to records that name none: by the key, or without one the same for a while."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import ClientError
from tailrace.client.partitioning import partition_of
from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName


class PartitionChoice:
    def __init__(
        self,
        cluster: Cluster,
        leader: Callable[[PartitionName], Awaitable[Address]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._cluster = cluster
        self._leader = leader  # finds the leader of a partition, and makes the topic if that is asked for
        self._spawn = spawn
        self._sticky: dict[str, int] = {}  # by topic, the partition of records without a key
        self._looking_up: dict[str, None] = {}  # topics whose metadata is old

    def forget(self, topic: str) -> None:
        """Give the next records without a key to a partition that is chosen anew."""
        self._sticky.pop(topic, None)

    async def partition(self, topic: str, key: bytes | None) -> int:
        count = self._cluster.map.partition_counts.get(topic)
        if count is None:
            first = PartitionName(topic, 0)
            await self._cluster.retry(f"find topic {topic}", lambda: self._leader(first))
            count = self._cluster.map.partition_counts[topic]
        elif self._cluster.is_stale(topic) and topic not in self._looking_up:
            self._looking_up[topic] = None
            self._spawn(self._look_up(topic))
        if key is not None:
            return partition_of(key, count)
        return self._sticky.setdefault(topic, int(self._cluster.driver.jitter(0, count)) % count)

    async def _look_up(self, topic: str) -> None:
        """Refresh the metadata of a topic; meanwhile records are sent by the old metadata."""
        try:
            await self._cluster.refresh([topic])
        except (Retry, ClientError):
            await self._cluster.driver.sleep(self._cluster.limits.pause_max_s)  # then the next record asks again
        finally:
            del self._looking_up[topic]
