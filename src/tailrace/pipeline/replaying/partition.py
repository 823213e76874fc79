"""Replay one partition of a history: exactly once, in order, and from where it was interrupted.

Records are written in transactions of up to 20,000 or, at a given rate, one second's worth. Each transaction also
commits the offset of the next record of the history, under a consumer group of the replay's own. Records and progress
are therefore committed atomically, and a replay that is run again resumes, or finds that it is done.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipeline.access import access_from
from tailrace.pipeline.arrow.encode import Rows
from tailrace.pipeline.arrow.murmur2 import partitions_of
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.manifest import ArchivedRange, archived_range_from
from tailrace.pipeline.histories.offset_order import read_in_offset_order
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import committed_offsets
from tailrace.pipeline.kafka.producer import Producer
from tailrace.pipeline.kafka.transactions import Transaction, commit_offsets_within, end_transaction, init_transactions
from tailrace.pipeline.replaying.parameters import ReplayParameters
from tailrace.pipeline.sink.rows import take

TRANSACTION_TIMEOUT_MS: Final = 60_000
RECORDS_PER_TRANSACTION: Final = 20_000


def replay_partition(told: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> int:
    """For `run_tasks`: replay the ranges of one partition, in offset order. Return the number of records written."""
    parameters = ReplayParameters(**{**given, "access": access_from(given["access"])})
    ranges = [archived_range_from(one) for one in told]
    with parameters.access.cluster() as cluster:
        return Replay(cluster, parameters, ranges[0].of).run(ranges)


class Replay:
    def __init__(self, cluster: Cluster, parameters: ReplayParameters, source: TopicPartition) -> None:
        self._cluster, self._parameters, self._source = cluster, parameters, source
        self._name = f"tailrace-replay-{parameters.replay_id}-{source}"
        self._count = len(cluster.partitions([parameters.into]))
        if parameters.keep_partition and source.partition >= self._count:
            raise PipelineFailed(f"{source} has no partition to go to: {parameters.into} has {self._count}")
        self._place = TopicPartition(parameters.into, 0)  # the partition under which the group's offset is committed
        self._turn = 0

    def run(self, ranges: list[ArchivedRange]) -> int:
        transaction = init_transactions(self._cluster, self._name, TRANSACTION_TIMEOUT_MS)
        producer = Producer(self._cluster, transaction.producer, transaction=transaction)
        done = committed_offsets(self._cluster, self._name, [self._place]).get(self._place, 0)
        began, at_once = time.monotonic(), self._at_once()
        for table in self._tables(ranges, max(done, self._parameters.first)):
            for first in range(0, len(table), at_once):
                self._write(producer, transaction, table.slice(first, at_once))
                self._pace(producer.written, began)
        return producer.written

    def _tables(self, ranges: list[ArchivedRange], start: int) -> Iterator[pa.Table]:
        for one in ranges:
            if one.end > start and one.start < self._parameters.end and one.files:
                for table in read_in_offset_order([Path(self._parameters.history) / file.path for file in one.files]):
                    yield self._chosen(table, start)

    def _chosen(self, table: pa.Table, start: int) -> pa.Table:
        parameters, offset = self._parameters, table.column("offset")
        stamp = table.column("timestamp").cast(pa.int64())
        keep = pc.and_(pc.greater_equal(offset, start), pc.less(offset, parameters.end))
        keep = pc.and_(
            keep, pc.and_(pc.greater_equal(stamp, parameters.earliest_ms), pc.less(stamp, parameters.latest_ms))
        )
        if parameters.key is not None:
            keep = pc.and_(keep, pc.fill_null(pc.equal(table.column("key"), parameters.key.encode()), False))
        return table.filter(keep)

    def _write(self, producer: Producer, transaction: Transaction, table: pa.Table) -> None:
        rows = self._rows(table.combine_chunks())
        targets = self._targets(rows)
        for number in np.unique(targets).tolist():
            producer.write(TopicPartition(self._parameters.into, number), take(rows, np.flatnonzero(targets == number)))
        producer.flush()
        after = table.column("offset")[-1].as_py() + 1
        commit_offsets_within(self._cluster, transaction, self._name, {self._place: after})
        end_transaction(self._cluster, transaction, commit=True)
        producer.begin_next_transaction()

    def _rows(self, table: pa.Table) -> Rows:
        batch = table.to_batches()[0]
        if self._parameters.keep_timestamp:
            timestamp = batch.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
        else:
            timestamp = np.full(len(batch), int(time.time() * 1000), np.int64)
        return Rows(
            key=batch.column("key"), value=batch.column("value"), timestamp=timestamp, headers=batch.column("headers")
        )

    def _targets(self, rows: Rows) -> np.ndarray:
        if self._parameters.keep_partition:
            return np.full(len(rows), self._source.partition, np.int64)
        self._turn += 1
        keyless = rows.key.is_null().to_numpy(zero_copy_only=False)
        return np.where(keyless, self._turn % self._count, partitions_of(rows.key, self._count))

    def _at_once(self) -> int:
        """Records per transaction: at most one second's worth, so that a low rate does not arrive in large bursts."""
        rate = self._parameters.per_second
        return min(max(int(rate), 1), RECORDS_PER_TRANSACTION) if rate else RECORDS_PER_TRANSACTION

    def _pace(self, written: int, began: float) -> None:
        if self._parameters.per_second:
            ahead = written / self._parameters.per_second - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
