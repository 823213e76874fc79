"""What a task does: write its rows. For exactly-once, it writes them in a transaction and leaves the transaction open.

The transactional id contains the task number and the attempt number, so that two attempts of a task that run at the
same time never end each other's transaction. A batch that is already decided is not written again.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.producer import Producer
from tailrace.pipeline.kafka.transactions import (
    ProducerId,
    Transaction,
    end_transaction,
    init_producer_id,
    init_transactions,
)
from tailrace.pipeline.sink.options import WriteOptions
from tailrace.pipeline.sink.progress import read_progress, transaction_name
from tailrace.pipeline.sink.rows import PartitionCounts, RowPartitioner


@dataclass
class TaskCommitMessage(WriterCommitMessage):
    """The commit message that a task sends to the driver."""

    task: int
    attempt: int
    query: str
    batch: int
    records: int
    topics: tuple[str, ...]
    producer: ProducerId | None  # None: no rows were written, or no transaction was used
    is_decided: bool = False  # the batch was already decided, so the task wrote nothing


class Attempt(NamedTuple):
    """A task attempt, with the query and the batch it belongs to."""

    task: int
    attempt: int
    query: str
    batch: int


def current_attempt(job: str) -> Attempt:
    """The current task attempt, from Spark's `TaskContext`. A batch write has no query id; `job` is used instead."""
    context = TaskContext.get()
    query = context.getLocalProperty("sql.streaming.queryId") or job
    batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
    return Attempt(context.partitionId(), context.attemptNumber(), query, batch)


def write_rows(options: WriteOptions, batches: Iterator[pa.RecordBatch], by: Attempt) -> TaskCommitMessage:
    """Write a task's rows."""
    with options.access.cluster() as cluster:
        if options.exactly_once and _is_decided(cluster, options.sink_id, by.query, by.batch):
            return TaskCommitMessage(*by, 0, (), None, is_decided=True)
        producer, transaction = _producer(cluster, options, by)
        try:
            _write(cluster, options, producer, batches)
        except BaseException:
            if transaction is not None and producer.partitions():
                _give_up(cluster, producer, transaction)
            raise
    topics = tuple(sorted({one.topic: None for one in producer.partitions()}))
    used = transaction.producer if transaction is not None and producer.written else None
    return TaskCommitMessage(*by, producer.written, topics, used)


def _write(cluster: Cluster, options: WriteOptions, producer: Producer, batches: Iterator[pa.RecordBatch]) -> None:
    def partitions(topics: Sequence[str]) -> list[TopicPartition]:
        producer.flush()  # a connection that still waits for a response cannot take another request
        return cluster.partitions(topics)

    partitioner, counts = RowPartitioner(options.topic, int(time.time() * 1000)), PartitionCounts(partitions)
    for rows in batches:
        for partition, those in partitioner.by_partition(rows, counts):
            producer.write(partition, those)
    producer.flush()


def _give_up(cluster: Cluster, producer: Producer, transaction: Transaction) -> None:
    """Abort the transaction, so that readers need not wait for its timeout.

    If the abort fails too, the first failure is reported.
    """
    with suppress(PipelineFailed):
        producer.discard_in_flight()
        end_transaction(cluster, transaction, commit=False)


def _is_decided(cluster: Cluster, sink: str, query: str, batch: int) -> bool:
    progress = read_progress(cluster, sink)
    if progress is not None and progress.state == "decided" and progress.query != query:
        raise PipelineFailed(  # this task would use the same transactional ids as that batch
            f"batch {progress.batch} of query {progress.query} is just being committed under sinkId {sink}: two "
            "queries must not share one"
        )
    return progress is not None and progress.covers(query, batch)


def _producer(cluster: Cluster, options: WriteOptions, by: Attempt) -> tuple[Producer, Transaction | None]:
    identity, transaction = _identity(cluster, options, by)
    producer = Producer(
        cluster,
        identity,
        transaction=transaction,
        compression=options.compression,
        batch_bytes=options.batch_bytes,
    )
    return producer, transaction


def _identity(cluster: Cluster, options: WriteOptions, by: Attempt) -> tuple[ProducerId, Transaction | None]:
    if not options.exactly_once:
        return init_producer_id(cluster), None
    transaction = init_transactions(cluster, transaction_name(options.sink_id, by.task, by.attempt), options.timeout_ms)
    return transaction.producer, transaction
