"""A consumer with isolation level read_committed.

Like Kafka's clients it skips the batches of aborted transactions, which the Fetch response lists.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from tailrace.model.ids import Id
from tailrace.records.control import Marker, read_control
from tailrace.records.opened import batches, open_batch
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.transaction_outcomes import TransactionOutcomes
from tailrace.testing.transaction_history import ReadRecord
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionFetched, PartitionToFetch, TopicToFetch

FETCH_VERSION: Final = 16
FETCH_MAX_BYTES: Final = 32 * 1024
READ_COMMITTED: Final = 1
PAUSE_MAX_SECONDS: Final = 0.5


class ReadCommittedConsumer:
    """Reads until every partition is read to its high watermark after all writers stopped (`writers_stopped`).

    With `starts_late` it starts reading only then.
    """

    def __init__(
        self,
        router: Router,
        outcomes: TransactionOutcomes,
        topic: str,
        partitions: int,
        writers_stopped: Callable[[], bool],
        *,
        starts_late: bool,
    ) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._polls = outcomes.polls.setdefault(self.name, [])
        self._topic = topic
        self._positions = dict.fromkeys(range(partitions), 0)
        self._writers_stopped = writers_stopped
        self._starts_late = starts_late
        self._ends: dict[int, int] = {}  # the leaders' high watermarks after the writers stopped
        self.stopping = False

    @property
    def done(self) -> bool:
        """Whether every partition was read to its end."""
        return all(self._ends.get(partition) == position for partition, position in self._positions.items())

    async def run(self) -> None:
        while not (self.stopping and self.done):
            if self._writers_stopped() or not self._starts_late:
                for partition in self._positions:
                    await self._read(partition)
            await asyncio.sleep(self._rng.random() * PAUSE_MAX_SECONDS)

    async def _read(self, partition: int) -> None:
        place = await self._router.find(self._topic, partition)
        if place is None or not place.replicas:
            return
        writers_stopped = self._writers_stopped()
        host = self._rng.choice(place.replicas) if self._rng.random() < 0.3 else place.leader
        found = None if host is None else await self._fetch(host, place.topic_id, partition)
        if found is None or found.error_code != 0:
            return
        seen = tuple(self._committed_records(partition, found))
        if seen:
            self._polls.append(seen)
        if writers_stopped and host == place.leader:
            self._ends[partition] = found.high_watermark

    async def _fetch(self, host: str, topic_id: Id, partition: int) -> PartitionFetched | None:
        wanted = PartitionToFetch(
            partition=partition, fetch_offset=self._positions[partition], partition_max_bytes=FETCH_MAX_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=READ_COMMITTED,
            topics=(TopicToFetch(topic_id=topic_id, partitions=(wanted,)),),
        )
        answer: FetchResponse | None = await self._router.call(host, request, FETCH_VERSION)
        return answer.topics[0].partitions[0] if answer is not None and answer.topics else None

    def _committed_records(self, partition: int, found: PartitionFetched) -> Iterator[ReadRecord]:
        """The records of committed transactions from the current position on; moves the position."""
        aborted = sorted((one.first_offset, one.producer_id) for one in found.aborted_transactions or ())
        skipped: dict[int, None] = {}  # ids of producers whose current transaction was aborted
        for batch, header in batches(found.records or b""):
            while aborted and aborted[0][0] <= header.last_offset:
                skipped[aborted.pop(0)[1]] = None
            if header.is_control:
                control = read_control(batch)
                if isinstance(control, Marker) and not control.committed:
                    skipped.pop(header.producer_id, None)
            elif header.is_transactional and header.producer_id not in skipped:
                for record in open_batch(batch):
                    if record.offset >= self._positions[partition]:
                        yield ReadRecord(str(partition), record.offset, (record.value or b"").decode())
            self._positions[partition] = max(self._positions[partition], header.last_offset + 1)
