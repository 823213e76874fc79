"""A consumer without a group: it reads partitions from their leader or another replica, and records each batch.

It continues each partition where it stopped. After an error it looks the partition up again. A follower whose log does
not reach that offset yet returns nothing, which is correct.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.model.ids import TopicPartition
from tailrace.records.opened import batches
from tailrace.testing.scenarios.cluster.clients.router import PartitionLocation, Router
from tailrace.testing.scenarios.cluster.invariants.claims import Claims
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionToFetch, TopicToFetch

FETCH_VERSION: Final = 16
FETCH_MAX_BYTES: Final = 8 * 1024
WAIT_MAX_MS: Final = 300
PAUSE_MAX_SECONDS: Final = 0.6


class Reader:
    def __init__(self, router: Router, claims: Claims, partitions: Callable[[], Sequence[tuple[str, int]]]) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._claims = claims
        self._partitions = partitions
        self._read_to: dict[TopicPartition, int] = {}
        self.batches = 0
        self.from_followers = 0  # of those batches
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            topic, partition = self._rng.choice(self._partitions())
            place = await self._router.find(topic, partition)
            if place is not None and place.replicas:
                await self._read(place, TopicPartition(place.topic_id, partition))
            await asyncio.sleep(self._rng.random() * PAUSE_MAX_SECONDS)

    async def _read(self, place: PartitionLocation, key: TopicPartition) -> None:
        host = self._rng.choice(place.replicas) if self._rng.random() < 0.5 else place.leader
        if host is None:
            return
        answer = await self._fetch(host, key)
        if answer is None or not answer.topics:
            return
        found = answer.topics[0].partitions[0]
        for batch, header in batches(found.records or b""):
            self._claims.read(key, header.base_offset, header.crc, f"{self.name} from {host}")
            self._read_to[key] = header.last_offset + 1
            self.batches += 1
            self.from_followers += host != place.leader
            assert len(batch) == header.size

    async def _fetch(self, host: str, key: TopicPartition) -> FetchResponse | None:
        offset, wait_ms = self._read_to.get(key, 0), self._rng.choice([0, WAIT_MAX_MS])
        wanted = PartitionToFetch(partition=key.partition, fetch_offset=offset, partition_max_bytes=FETCH_MAX_BYTES)
        topic = TopicToFetch(topic_id=key.topic_id, partitions=(wanted,))
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=(topic,))
        answer: FetchResponse | None = await self._router.call(host, request, FETCH_VERSION)
        return answer
