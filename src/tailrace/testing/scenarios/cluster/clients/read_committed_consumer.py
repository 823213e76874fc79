"""A consumer of committed records only, which leaves out what was aborted, as clients do with what Fetch tells them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from tailrace.model.ids import Id
from tailrace.records.control import Marker, read_control
from tailrace.records.opened import batches, open_batch
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.transaction_outcomes import TransactionOutcomes
from tailrace.testing.transaction_history import Seen
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionFetched, PartitionToFetch, TopicToFetch

FETCH_VERSION: Final = 16
FETCH_MAX_BYTES: Final = 32 * 1024
READ_COMMITTED: Final = 1
PAUSE_MAX_SECONDS: Final = 0.5


class ReadCommittedConsumer:
    """`is_quiet` tells that nobody writes any more: then it reads to the end; who `comes_late` begins only then."""

    def __init__(
        self,
        router: Router,
        outcomes: TransactionOutcomes,
        topic: str,
        partitions: int,
        is_quiet: Callable[[], bool],
        *,
        comes_late: bool,
    ) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._polls = outcomes.polls.setdefault(self.name, [])
        self._topic = topic
        self._read_to = dict.fromkeys(range(partitions), 0)
        self._is_quiet = is_quiet
        self._comes_late = comes_late
        self._ends: dict[int, int] = {}  # the high watermarks, since it is quiet
        self.stopping = False

    @property
    def done(self) -> bool:
        """Whether all that is committed was read."""
        return all(self._ends.get(partition) == offset for partition, offset in self._read_to.items())

    async def run(self) -> None:
        while not (self.stopping and self.done):
            if self._is_quiet() or not self._comes_late:
                for partition in self._read_to:
                    await self._read(partition)
            await asyncio.sleep(self._rng.random() * PAUSE_MAX_SECONDS)

    async def _read(self, partition: int) -> None:
        place = await self._router.find(self._topic, partition)
        if place is None or not place.replicas:
            return
        is_quiet = self._is_quiet()
        host = self._rng.choice(place.replicas) if self._rng.random() < 0.3 else place.leader
        found = None if host is None else await self._fetch(host, place.topic_id, partition)
        if found is None or found.error_code != 0:
            return
        seen = tuple(self._taken(partition, found))
        if seen:
            self._polls.append(seen)
        if is_quiet and host == place.leader:
            self._ends[partition] = found.high_watermark

    async def _fetch(self, host: str, topic_id: Id, partition: int) -> PartitionFetched | None:
        wanted = PartitionToFetch(
            partition=partition, fetch_offset=self._read_to[partition], partition_max_bytes=FETCH_MAX_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=READ_COMMITTED,
            topics=(TopicToFetch(topic_id=topic_id, partitions=(wanted,)),),
        )
        answer: FetchResponse | None = await self._router.ask(host, request, FETCH_VERSION)
        return answer.topics[0].partitions[0] if answer is not None and answer.topics else None

    def _taken(self, partition: int, found: PartitionFetched) -> Iterator[Seen]:
        """The transactional records that were not aborted, from where one was."""
        aborted = sorted((one.first_offset, one.producer_id) for one in found.aborted_transactions or ())
        leaving_out: dict[int, None] = {}  # producers
        for batch, header in batches(found.records or b""):
            while aborted and aborted[0][0] <= header.last_offset:
                leaving_out[aborted.pop(0)[1]] = None
            if header.is_control:
                said = read_control(batch)
                if isinstance(said, Marker) and not said.committed:
                    leaving_out.pop(header.producer_id, None)
            elif header.is_transactional and header.producer_id not in leaving_out:
                for record in open_batch(batch):
                    if record.offset >= self._read_to[partition]:
                        yield Seen(str(partition), record.offset, (record.value or b"").decode())
            self._read_to[partition] = max(self._read_to[partition], header.last_offset + 1)
