"""Write batches to partitions, each once and in order, however often a request has to be sent again.

While a batch is under way the next is encoded. One that fails for a reason that passes is sent again with the same
numbers, so that the broker knows it if it has it already.
"""

from typing import Any, Final

from tailrace.model.limits import KiB
from tailrace.pipeline.arrow.encode import Rows, encode_records, record_sizes
from tailrace.pipeline.failure import BrokersSilent
from tailrace.pipeline.kafka.cluster import AskAgain, Cluster, TopicPartition, check
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
        most_bytes: int = BATCH_BYTES,
    ) -> None:
        self._cluster, self._producer, self._transaction = cluster, producer, transaction
        self._compression, self._most_bytes = compression, most_bytes
        self._sequence: dict[TopicPartition, int] = {}
        self._added: dict[TopicPartition, None] = {}  # partitions that are in the transaction
        self._under_way: tuple[Connection, TopicPartition, ProduceRequest] | None = None
        self.written = 0

    def write(self, partition: TopicPartition, rows: Rows) -> None:
        """Append rows to a partition, in as many batches as their bytes ask for."""
        if partition not in self._added:
            self._added[partition] = None
            self._sequence.setdefault(partition, 0)
            if self._transaction is not None:
                self._settle()
                add_partitions(self._cluster, self._transaction, [partition])
        sizes = record_sizes(rows).cumsum()
        first = 0
        while first < len(rows):
            room = (int(sizes[first - 1]) if first else 0) + self._most_bytes
            end = max(first + 1, int(sizes.searchsorted(room, side="right")))
            self._send(partition, self._batch(partition, rows.slice(first, end - first)))
            first = end
        self.written += len(rows)

    def flush(self) -> None:
        """Wait until all that was written is acknowledged."""
        self._settle()

    def forget(self) -> None:
        """Let go of what is under way, whatever comes of it: connections are free for other requests."""
        if self._under_way is not None:
            self._under_way[0].drain()  # not closed at once: what comes after it shall reach the broker after it
            self._under_way = None
        self._cluster.close()

    def begin_again(self) -> None:
        """The transaction has ended, and the next begins: no partition is in it yet."""
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
        self._settle()
        try:
            connection = self._cluster.leader(partition)
            connection.send(request)
        except (AskAgain, BrokersSilent):
            self._again(partition, request)
        else:
            self._under_way = (connection, partition, request)

    def _settle(self) -> None:
        """Take the answer to what is under way."""
        if self._under_way is None:
            return
        (connection, partition, request), self._under_way = self._under_way, None
        try:
            _check(connection.receive(), partition)
        except (AskAgain, BrokersSilent):
            self._again(partition, request)

    def _again(self, partition: TopicPartition, request: ProduceRequest) -> None:
        self._cluster.until_answered(lambda: _check(self._cluster.leader(partition).call(request), partition))


def _check(answer: Any, partition: TopicPartition) -> None:
    got = answer.topics[0].partitions[0]
    if got.error_code != Error.DUPLICATE_SEQUENCE_NUMBER:  # it has it already
        check(got.error_code, f"write to {partition}")
