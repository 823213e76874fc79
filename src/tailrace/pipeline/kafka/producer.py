"""Write batches to partitions, each once and in order, however often a request is retried.

While a batch is in flight, the next batch is encoded. After a retriable error, a batch is sent again with the same
sequence numbers, so that the broker recognizes a batch that it already has.
"""

from typing import Any, Final

from tailrace.model.limits import KiB
from tailrace.pipeline.arrow.encode import Rows, encode_records, record_sizes
from tailrace.pipeline.failure import NoBrokerAvailable
from tailrace.pipeline.kafka.cluster import Cluster, RetriableError, TopicPartition, check
from tailrace.pipeline.kafka.connection import Connection
from tailrace.pipeline.kafka.transactions import ProducerId, Transaction, add_partitions
from tailrace.records.build import seal_batch
from tailrace.records.compress import Compression
from tailrace.records.header import TRANSACTIONAL_BIT
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

BATCH_BYTES: Final = 512 * KiB
WRITE_TIMEOUT_MS: Final = 30_000
SEQUENCES: Final = 2**31


class Producer:
    def __init__(
        self,
        cluster: Cluster,
        producer: ProducerId,
        *,
        transaction: Transaction | None = None,
        compression: Compression = "none",
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._cluster, self._producer, self._transaction = cluster, producer, transaction
        self._compression, self._batch_bytes = compression, batch_bytes
        self._sequence: dict[TopicPartition, int] = {}
        self._added: dict[TopicPartition, None] = {}  # partitions in the current transaction
        self._in_flight: tuple[Connection, TopicPartition, ProduceRequest] | None = None
        self.written = 0

    def write(self, partition: TopicPartition, rows: Rows) -> None:
        """Append rows to a partition, split into batches by size."""
        if partition not in self._added:
            self._added[partition] = None
            self._sequence.setdefault(partition, 0)
            if self._transaction is not None:
                self._await_response()
                add_partitions(self._cluster, self._transaction, [partition])
        sizes = record_sizes(rows).cumsum()
        first = 0
        while first < len(rows):
            room = (int(sizes[first - 1]) if first else 0) + self._batch_bytes
            end = max(first + 1, int(sizes.searchsorted(room, side="right")))
            self._send(partition, self._batch(partition, rows.slice(first, end - first)))
            first = end
        self.written += len(rows)

    def flush(self) -> None:
        """Wait until all written batches are acknowledged."""
        self._await_response()

    def discard_in_flight(self) -> None:
        """Drop the request in flight, whatever its result, so that connections are free for other requests."""
        if self._in_flight is not None:
            self._in_flight[0].drain()  # wait for the response: later requests must reach the broker later
            self._in_flight = None
        self._cluster.close()

    def begin_next_transaction(self) -> None:
        """Start the next transaction after the last one has ended: no partition is in the new one yet."""
        self._added = {}

    def partitions(self) -> list[TopicPartition]:
        return sorted(self._sequence)

    def _batch(self, partition: TopicPartition, rows: Rows) -> bytearray:
        sequence = self._sequence[partition]
        self._sequence[partition] = (sequence + len(rows)) % SEQUENCES
        return seal_batch(
            memoryview(encode_records(rows)),
            count=len(rows),
            base_timestamp=int(rows.timestamp[0]),
            max_timestamp=int(rows.timestamp.max()),
            compression=self._compression,
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            base_sequence=sequence,
            flags=TRANSACTIONAL_BIT if self._transaction is not None else 0,
        )

    def _send(self, partition: TopicPartition, batch: bytearray) -> None:
        one = PartitionToProduce(partition=partition.partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self._transaction.name if self._transaction is not None else None,
            acks=-1,
            timeout_ms=WRITE_TIMEOUT_MS,
            topics=(TopicToProduce(name=partition.topic, partitions=(one,)),),
        )
        self._await_response()
        try:
            connection = self._cluster.leader(partition)
            connection.send(request)
        except (RetriableError, NoBrokerAvailable):
            self._retry(partition, request)
        else:
            self._in_flight = (connection, partition, request)

    def _await_response(self) -> None:
        """Receive the response to the request in flight, and retry the request if needed."""
        if self._in_flight is None:
            return
        (connection, partition, request), self._in_flight = self._in_flight, None
        try:
            _check(connection.receive(), partition)
        except (RetriableError, NoBrokerAvailable):
            self._retry(partition, request)

    def _retry(self, partition: TopicPartition, request: ProduceRequest) -> None:
        self._cluster.with_retries(lambda: _check(self._cluster.leader(partition).call(request), partition))


def _check(answer: Any, partition: TopicPartition) -> None:
    got = answer.topics[0].partitions[0]
    if got.error_code != Error.DUPLICATE_SEQUENCE_NUMBER:  # else the broker already has the batch
        check(got.error_code, f"write to {partition}")
