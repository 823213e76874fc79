"""Requests about producer ids and transactions: begin an epoch, add partitions and offsets, commit or abort.

A transactional id belongs to one producer at a time: a producer that initializes it gets a new epoch, and the open
transaction of the one before is aborted. Each request may be repeated: with the same producer id and epoch it has no
further effect.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tailrace.client.cluster import GROUP, TRANSACTION, Cluster
from tailrace.client.faults import check
from tailrace.client.offsets import by_topic
from tailrace.model.ids import PartitionName
from tailrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tailrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TopicToAdd
from tailrace.wire.messages.end_txn import EndTxnRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnPartitionToCommit, TxnTopicToCommit

NO_TIMEOUT_MS: Final = 2**31 - 1


class ProducerIdentity(NamedTuple):
    id: int
    epoch: int


NO_IDENTITY: Final = ProducerIdentity(-1, -1)


class OpenTransaction(NamedTuple):
    """The transactional id, and the producer that uses it."""

    name: str
    producer: ProducerIdentity


async def begin_epoch(
    cluster: Cluster,
    name: str | None,
    before: ProducerIdentity = NO_IDENTITY,
    *,
    timeout_ms: int = NO_TIMEOUT_MS,
    within_s: float | None = None,
) -> ProducerIdentity:
    """A producer id, or the next epoch of `before`; with a transactional id, its open transaction is aborted."""
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=before.id, producer_epoch=before.epoch
    )
    what = "get a producer id" if name is None else f"become the producer of {name}"

    async def ask() -> ProducerIdentity:
        if name is None:
            answer = await cluster.call_any(request)
            check(answer.error_code, what)
        else:
            answer = await cluster.call_coordinator(TRANSACTION, name, request)
            cluster.check_coordinated(TRANSACTION, name, answer.error_code, what)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    return await cluster.retry(what, ask, within_s)


async def add_partitions(cluster: Cluster, transaction: OpenTransaction, partitions: Iterable[PartitionName]) -> None:
    topics = tuple(
        TopicToAdd(name=topic, partitions=tuple(one.partition for one in ones))
        for topic, ones in by_topic(partitions).items()
    )

    async def ask() -> None:
        answer = await _ask(cluster, transaction, AddPartitionsToTxnRequest, topics=topics)
        for topic in answer.topics:
            for one in topic.partitions:
                what = f"add {topic.name}-{one.partition} to transaction {transaction.name}"
                cluster.check_coordinated(TRANSACTION, transaction.name, one.error_code, what)

    await cluster.retry(f"add partitions to transaction {transaction.name}", ask)


async def commit_offsets_within(
    cluster: Cluster,
    transaction: OpenTransaction,
    group: str,
    offsets: Mapping[PartitionName, int],
    notes: Mapping[PartitionName, str] | None = None,
    **member: object,
) -> None:
    """Commit a group's offsets as part of the transaction: they take effect only if the transaction commits.

    `notes` are stored with the offsets. `member` are the fields of the request that name a member of the group, if any
    does.
    """
    notes = notes or {}
    what = f"commit offsets of group {group} in transaction {transaction.name}"
    topics = tuple(
        TxnTopicToCommit(
            name=topic,
            partitions=tuple(
                TxnPartitionToCommit(
                    partition=one.partition, committed_offset=offsets[one], committed_metadata=notes.get(one, "")
                )
                for one in ones
            ),
        )
        for topic, ones in by_topic(offsets).items()
    )
    request = TxnOffsetCommitRequest(
        transactional_id=transaction.name,
        group_id=group,
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        topics=topics,
        **member,  # type: ignore[arg-type]
    )

    async def add() -> None:
        answer = await _ask(cluster, transaction, AddOffsetsToTxnRequest, group_id=group)
        cluster.check_coordinated(TRANSACTION, transaction.name, answer.error_code, what)

    async def commit() -> None:
        answer = await cluster.call_coordinator(GROUP, group, request)
        for topic in answer.topics:
            for one in topic.partitions:
                cluster.check_coordinated(GROUP, group, one.error_code, what)

    await cluster.retry(what, add)
    await cluster.retry(what, commit)


async def end_transaction(cluster: Cluster, transaction: OpenTransaction, *, commit: bool) -> None:
    what = f"{'commit' if commit else 'abort'} transaction {transaction.name}"

    async def ask() -> None:
        answer = await _ask(cluster, transaction, EndTxnRequest, committed=commit)
        cluster.check_coordinated(TRANSACTION, transaction.name, answer.error_code, what)

    await cluster.retry(what, ask)


async def _ask(cluster: Cluster, transaction: OpenTransaction, request: type, **fields: Any) -> Any:
    own = {
        "transactional_id": transaction.name,
        "producer_id": transaction.producer.id,
        "producer_epoch": transaction.producer.epoch,
    }
    return await cluster.call_coordinator(TRANSACTION, transaction.name, request(**own, **fields))
