"""Producer ids and transactions: get a producer id, add partitions and offsets, commit or abort.

A transactional id belongs to one producer at a time: a producer that initializes it gets a new epoch, and the previous
producer's open transaction is aborted. Any client that knows the producer id and epoch can end the transaction, and
repeating the same commit or abort has no further effect.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.pipeline.kafka.offsets import Offsets
from tailrace.wire.errors import Error
from tailrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tailrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TopicToAdd
from tailrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from tailrace.wire.messages.end_txn import EndTxnRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnPartitionToCommit, TxnTopicToCommit

TRANSACTION_KEY: Final = 1
GROUP_KEY: Final = 0
NO_TIMEOUT_MS: Final = 2**31 - 1


class ProducerId(NamedTuple):
    id: int
    epoch: int


class Transaction(NamedTuple):
    """A transaction, open or ended."""

    name: str  # the transactional id
    producer: ProducerId


def init_producer_id(cluster: Cluster) -> ProducerId:
    """A producer id for an idempotent producer without transactions: batches are appended once and in order."""

    def ask() -> ProducerId:
        answer = cluster.call_any(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TIMEOUT_MS))
        check(answer.error_code, "get a producer id")
        return ProducerId(answer.producer_id, answer.producer_epoch)

    return cluster.with_retries(ask)


def init_transactions(cluster: Cluster, name: str, timeout_ms: int) -> Transaction:
    """Become the producer of a transactional id; an open transaction of that id is aborted."""

    def ask() -> Transaction:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        answer = cluster.coordinator(name, TRANSACTION_KEY).call(request)
        check(answer.error_code, f"become the producer of {name}")
        return Transaction(name, ProducerId(answer.producer_id, answer.producer_epoch))

    return cluster.with_retries(ask)


def add_partitions(cluster: Cluster, transaction: Transaction, partitions: Sequence[TopicPartition]) -> None:
    def ask() -> None:
        topics = tuple(
            TopicToAdd(name=topic, partitions=tuple(one.partition for one in ones))
            for topic, ones in groupby(sorted(partitions), lambda one: one.topic)
        )
        answer = _ask(cluster, transaction, AddPartitionsToTxnRequest, topics=topics)
        for topic in answer.topics:
            for one in topic.partitions:
                check(one.error_code, f"add {topic.name}-{one.partition} to transaction {transaction.name}")

    cluster.with_retries(ask)


def commit_offsets_within(cluster: Cluster, transaction: Transaction, group: str, offsets: Offsets) -> None:
    """Commit a group's offsets as part of the transaction: they take effect only if the transaction commits."""

    def ask() -> None:
        answer = _ask(cluster, transaction, AddOffsetsToTxnRequest, group_id=group)
        check(answer.error_code, f"add group {group} to transaction {transaction.name}")
        topics = tuple(
            TxnTopicToCommit(
                name=topic,
                partitions=tuple(
                    TxnPartitionToCommit(partition=one.partition, committed_offset=offsets[one], committed_metadata="")
                    for one in ones
                ),
            )
            for topic, ones in groupby(sorted(offsets), lambda one: one.topic)
        )
        request = TxnOffsetCommitRequest(
            transactional_id=transaction.name,
            group_id=group,
            producer_id=transaction.producer.id,
            producer_epoch=transaction.producer.epoch,
            topics=topics,
        )
        for topic in cluster.coordinator(group, GROUP_KEY).call(request).topics:
            for one in topic.partitions:
                check(one.error_code, f"commit offsets of group {group} in transaction {transaction.name}")

    cluster.with_retries(ask)


def end_transaction(cluster: Cluster, transaction: Transaction, *, commit: bool) -> None:
    def ask() -> None:
        answer = _ask(cluster, transaction, EndTxnRequest, committed=commit)
        check(answer.error_code, f"{'commit' if commit else 'abort'} transaction {transaction.name}")

    cluster.with_retries(ask)


def transaction_state(cluster: Cluster, name: str) -> tuple[str, ProducerId]:
    """The transaction state as Kafka names it (`Ongoing`, …; `Unknown` if the id is not found), and the producer."""

    def ask() -> tuple[str, ProducerId]:
        request = DescribeTransactionsRequest(transactional_ids=(name,))
        one = cluster.coordinator(name, TRANSACTION_KEY).call(request).transaction_states[0]
        if one.error_code == Error.TRANSACTIONAL_ID_NOT_FOUND:
            return "Unknown", ProducerId(-1, -1)
        check(one.error_code, f"describe transaction {name}")
        return one.transaction_state, ProducerId(one.producer_id, one.producer_epoch)

    return cluster.with_retries(ask)


def _ask(cluster: Cluster, transaction: Transaction, request: type, **fields: Any) -> Any:
    told: Mapping[str, Any] = {
        "transactional_id": transaction.name,
        "producer_id": transaction.producer.id,
        "producer_epoch": transaction.producer.epoch,
    }
    return cluster.coordinator(transaction.name, TRANSACTION_KEY).call(request(**told, **fields))
