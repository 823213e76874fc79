"""Producer ids and transactions: get a producer id, add partitions and offsets, commit or abort.

A transactional id belongs to one producer at a time: a producer that initializes it gets a new epoch, and the previous
producer's open transaction is aborted. Any client that knows the producer id and epoch can end the transaction, and
repeating the same commit or abort has no further effect.
"""

from collections.abc import Sequence

from tailrace.client import transactions as client
from tailrace.client.cluster import TRANSACTION
from tailrace.client.transactions import OpenTransaction as Transaction
from tailrace.client.transactions import ProducerIdentity as ProducerId
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.pipeline.kafka.offsets import Offsets
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_transactions import DescribeTransactionsRequest

__all__ = [
    "ProducerId",
    "Transaction",
    "add_partitions",
    "commit_offsets_within",
    "end_transaction",
    "init_producer_id",
    "init_transactions",
    "transaction_state",
]


def init_producer_id(cluster: Cluster) -> ProducerId:
    """A producer id for an idempotent producer without transactions: batches are appended once and in order."""
    return cluster.run(client.begin_epoch(cluster.core, None))


def init_transactions(cluster: Cluster, name: str, timeout_ms: int) -> Transaction:
    """Become the producer of a transactional id; an open transaction of that id is aborted."""
    return Transaction(name, cluster.run(client.begin_epoch(cluster.core, name, timeout_ms=timeout_ms)))


def add_partitions(cluster: Cluster, transaction: Transaction, partitions: Sequence[TopicPartition]) -> None:
    cluster.run(client.add_partitions(cluster.core, transaction, partitions))


def commit_offsets_within(cluster: Cluster, transaction: Transaction, group: str, offsets: Offsets) -> None:
    """Commit a group's offsets as part of the transaction: they take effect only if the transaction commits."""
    cluster.run(client.commit_offsets_within(cluster.core, transaction, group, offsets))


def end_transaction(cluster: Cluster, transaction: Transaction, *, commit: bool) -> None:
    cluster.run(client.end_transaction(cluster.core, transaction, commit=commit))


def transaction_state(cluster: Cluster, name: str) -> tuple[str, ProducerId]:
    """The transaction state as Kafka names it (`Ongoing`, …; `Unknown` if the id is not found), and the producer."""

    def ask() -> tuple[str, ProducerId]:
        request = DescribeTransactionsRequest(transactional_ids=(name,))
        one = cluster.coordinator(name, TRANSACTION).call(request).transaction_states[0]
        if one.error_code == Error.TRANSACTIONAL_ID_NOT_FOUND:
            return "Unknown", ProducerId(-1, -1)
        check(one.error_code, f"describe transaction {name}")
        return one.transaction_state, ProducerId(one.producer_id, one.producer_epoch)

    return cluster.with_retries(ask)
