"""Clients of a compacted topic: they write some keys again and again, with tombstones and in transactions.

A consumer reads the whole topic when all have finished, from all replicas in turn: it must find the table that the
committed records give.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tailrace.model.ids import Id, TopicPartition
from tailrace.records.build import build_batch
from tailrace.records.control import Marker, read_control
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord
from tailrace.testing.scenarios.cluster.clients.read_committed_consumer import ReadCommittedConsumer
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.transactional_producer import (
    CLASSIC,
    KIP_890,
    ProducerIdentity,
    ProtocolVersions,
    TransactionalProducer,
    TransactionFailed,
)
from tailrace.testing.scenarios.cluster.clients.writer import ProduceMode, Writer
from tailrace.testing.scenarios.cluster.invariants.compacted_history import CompactedHistories, Replica
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.table_read import Answer, Moment, TableRead
from tailrace.testing.scenarios.cluster.invariants.transaction_outcomes import TransactionOutcomes
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.transaction_history import ReadRecord
from tailrace.wire.messages.create_topics import NewTopicConfig
from tailrace.wire.messages.fetch import PartitionFetched
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

KEYED_TOPIC: Final = "keyed"
KEYS: Final = 8  # in use at a time
KEYS_RETIRED_PER_SECOND: Final = 4  # never written again: a value that comes back to life stays visible
TOMBSTONE_CHANCE: Final = 0.35
COMMIT_CHANCE: Final = 0.6
DEATH_CHANCE: Final = 0.1
RECORDS_MAX: Final = 3  # of a transaction
SAFE: Final = ProduceMode(idempotent=True, acks=-1)
PLAIN: Final = ProduceMode(idempotent=False, acks=-1)


def topic_settings(plan: Plan) -> tuple[NewTopicConfig, ...]:
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": str(plan.keyed_segment_bytes),
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": str(plan.tombstones_kept_ms),
    }
    return tuple(NewTopicConfig(name=name, value=value) for name, value in settings.items())


def keyed(router: Router, text: str) -> NewRecord:
    """The next record: one of the keys in use, with a value or a tombstone."""
    rng, clock = router.rng, router.ports.clock
    key = f"k{int(clock.monotonic() * KEYS_RETIRED_PER_SECOND) + rng.randrange(KEYS)}".encode()
    value = None if rng.random() < TOMBSTONE_CHANCE else text.encode()
    return NewRecord(key=key, value=value, timestamp=clock.wall_ms())


class KeyedWriter(Writer):
    def _batch(self, first: int, count: int) -> bytes:
        records = [keyed(self._router, f"{self.name} {number}") for number in range(first, first + count)]
        if not self._mode.idempotent:
            return bytes(build_batch(records))
        return bytes(build_batch(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=first))


class KeyedProducer(TransactionalProducer):
    def request(self, producer: ProducerIdentity, partition: int, sequence: int, value: str) -> ProduceRequest:
        batch = build_batch(
            [keyed(self._router, value)],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionToProduce(partition=partition, records=bytes(batch))
        topic = TopicToProduce(name=KEYED_TOPIC, partitions=(data,))
        return ProduceRequest(transactional_id=self._id, acks=-1, timeout_ms=1000, topics=(topic,))


class KeyedTransactions:
    """Transactions of a few records; some are aborted, and some left open when the client dies."""

    def __init__(self, router: Router, versions: ProtocolVersions, rest_max_seconds: float) -> None:
        self.name = router.name
        self._rng = router.rng
        self._rest_max_seconds = rest_max_seconds
        self._producer = KeyedProducer(router, KEYED_TOPIC, f"of {router.name}", versions)
        self._is_initialized = False
        self._number = 0
        self.done = True
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            self.done = False
            if not self._is_initialized:
                await self._producer.init()
                self._is_initialized = True
            try:
                await self._transaction()
            except TransactionFailed:
                self._is_initialized = False
            self.done = True
            await asyncio.sleep(self._rng.random() * self._rest_max_seconds)

    async def _transaction(self) -> None:
        self._number += 1
        await self._producer.add([0])
        for number in range(self._rng.randint(1, RECORDS_MAX)):
            await self._producer.write(0, f"{self.name} {self._number} {number}")
            if self._rng.random() < DEATH_CHANCE:
                raise TransactionFailed("the client died")
        await self._producer.end(committed=self._rng.random() < COMMIT_CHANCE)


class TableReader(ReadCommittedConsumer):
    """Reads the topic from its start when all writers have finished, and folds it into a table.

    It reads fast: tombstones are kept for a time only, and a consumer that takes longer may miss some, as in Kafka.
    """

    def __init__(self, router: Router, histories: CompactedHistories, writers_stopped: Callable[[], bool]) -> None:
        super().__init__(router, TransactionOutcomes(), KEYED_TOPIC, 1, writers_stopped, starts_late=True)
        self.found = TableRead(router.name)
        self._histories = histories

    async def _read(self, partition: int) -> None:
        position = -1
        while position < self._positions[partition]:
            position = self._positions[partition]
            await super()._read(partition)

    async def _fetch(self, host: str, topic_id: Id, partition: int) -> PartitionFetched | None:
        position, replica = self._positions[partition], (host, TopicPartition(topic_id, partition))
        asked = self._moment(replica)
        found = await super()._fetch(host, topic_id, partition)
        if found is not None and found.records:
            end = max(header.last_offset for _, header in batches(found.records)) + 1
            self.found.answers.append(Answer(range(position, end), asked, self._moment(replica)))
        return found

    def _moment(self, replica: Replica) -> Moment:
        log = replica, self._histories.begun_anew[replica]
        return Moment(log, self._router.ports.clock.monotonic())

    def _committed_records(self, partition: int, found: PartitionFetched) -> Iterator[ReadRecord]:
        position = self._positions[partition]
        aborted = sorted((one.first_offset, one.producer_id) for one in found.aborted_transactions or ())
        skipped: dict[int, None] = {}
        for batch, header in batches(found.records or b""):
            if header.last_offset < position:
                raise InvariantViolated(Invariant.COMPACTED, f"{self.name} got {header.base_offset} after {position}")
            while aborted and aborted[0][0] <= header.last_offset:
                skipped[aborted.pop(0)[1]] = None
            if header.is_control:
                control = read_control(batch)
                if isinstance(control, Marker) and not control.committed:
                    skipped.pop(header.producer_id, None)
            elif not header.is_transactional or header.producer_id not in skipped:
                self.found.table.update((one.key, (one.offset, one.value)) for one in open_batch(batch))
            position = header.last_offset + 1
        self._positions[partition] = position
        return iter(())


class KeyedWorkload:
    def __init__(self, router: Callable[[str], Router], plan: Plan, histories: CompactedHistories) -> None:
        rest = plan.keyed_rest_max_seconds
        self._histories = histories
        self._tombstones_kept_ms = plan.tombstones_kept_ms
        self.writers: list[KeyedWriter | KeyedTransactions] = [
            KeyedWriter(router(f"kw{number}"), histories, mode, lambda: KEYED_TOPIC, 0, rest)
            for number, mode in enumerate((SAFE, PLAIN))
        ]
        self.writers += [
            KeyedTransactions(router(f"kx{number}"), versions, 2 * rest)
            for number, versions in enumerate((CLASSIC, KIP_890))
        ]
        self.readers = [TableReader(router(f"kr{number}"), histories, lambda: not self._writing) for number in range(2)]

    @property
    def clients(self) -> Sequence[KeyedWriter | KeyedTransactions | TableReader]:
        return [*self.writers, *self.readers]

    @property
    def _writing(self) -> list[str]:
        return [one.name for one in self.writers if not (one.stopping and one.done)]

    @property
    def busy(self) -> list[str]:
        return self._writing + [one.name for one in self.readers if one.stopping and not one.done]

    def check(self, key: TopicPartition) -> None:
        """After the cluster has converged: what the readers have read is the table of the committed records."""
        history = self._histories.of(key)
        history.check_claims()
        for reader in self.readers:
            reader.found.check(history, self._tombstones_kept_ms)
