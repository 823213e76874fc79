"""Rows of a DataFrame as records: what each column means, and to which partition each row goes.

The column `value` is required; `key`, `headers`, `topic`, `partition` and `timestamp` are optional. Strings are written
as UTF-8. A row without a partition goes to the partition of its key, the same that Kafka's own clients choose. Rows
with neither partition nor key all go to one partition per Arrow batch of a task; the next batch uses the next
partition. As in Spark's Kafka sink, the option `topic` overrides the column `topic`: rows read from one topic can be
written to another without a select.
"""

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipeline.arrow.encode import Rows
from tailrace.pipeline.arrow.header_columns import HEADER_TYPE
from tailrace.pipeline.arrow.murmur2 import partitions_of
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMN_TYPES: Final = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
    "headers": ("array<struct<key:string,value:binary>>", "array<struct<key:binary,value:binary>>"),
}
# Columns of the source that are not written: the broker assigns new values.
IGNORED_COLUMNS: Final = ("offset", "timestampType")


def check_schema(schema: "StructType", topic: str) -> None:
    """Reject unknown columns, columns of the wrong type, and a missing `value` or topic."""
    names = [one.name for one in schema]
    for one in schema:
        if one.name in IGNORED_COLUMNS:
            continue
        if one.name not in COLUMN_TYPES:
            raise PipelineFailed(_unknown(one.name))
        if (given := one.dataType.simpleString()) not in COLUMN_TYPES[one.name]:
            raise PipelineFailed(
                f"the column {one.name} is {given}; it has to be {' or '.join(COLUMN_TYPES[one.name])}"
            )
    if "value" not in names:
        raise PipelineFailed("the rows have no column value; it is required")
    if "topic" not in names and not topic:
        raise PipelineFailed('no topic to write to: give option("topic", "orders"), or a column topic')


def _unknown(name: str) -> str:
    near = get_close_matches(name.lower(), COLUMN_TYPES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there may be {', '.join(COLUMN_TYPES)}; leave it out with a select"
    return f"a column {name} cannot be written; {hint}"


class RowPartitioner:
    """Sorts rows by the partition they go to."""

    def __init__(self, topic: str, now_ms: int) -> None:
        self._topic, self._now_ms = topic, now_ms
        self._turn = 0  # goes up with each batch; picks the partition of rows without a key

    def by_partition(self, batch: pa.RecordBatch, counts: "PartitionCounts") -> Iterator[tuple[TopicPartition, Rows]]:
        """The rows of a batch, grouped by partition; within a partition, rows keep their order."""
        whole = self._rows(batch)
        is_named = "topic" in batch.schema.names and not self._topic
        topics = pc.fill_null(batch.column("topic"), "") if is_named else pa.repeat(self._topic, len(batch))
        self._turn += 1
        for topic in pc.unique(topics).to_pylist():
            if not topic:
                raise PipelineFailed("a row has no topic, and there is no option topic")
            those = np.flatnonzero(pc.equal(topics, topic).to_numpy(zero_copy_only=False))
            partitions = self._partitions(batch, those, counts(topic))
            for number in np.unique(partitions).tolist():
                yield TopicPartition(topic, number), take(whole, those[partitions == number])

    def _partitions(self, batch: pa.RecordBatch, those: np.ndarray, count: int) -> np.ndarray:
        keys = _bytes(batch, "key").take(pa.array(those))
        chosen = np.where(keys.is_null().to_numpy(zero_copy_only=False), self._turn % count, partitions_of(keys, count))
        if "partition" in batch.schema.names:
            given = pc.fill_null(batch.column("partition"), -1).to_numpy(zero_copy_only=False)[those]
            chosen = np.where(given >= 0, given, chosen)
        if chosen.max(initial=0) >= count:
            raise PipelineFailed(f"a row is for partition {int(chosen.max())}; its topic has {count}")
        return chosen

    def _rows(self, batch: pa.RecordBatch) -> Rows:
        names = batch.schema.names
        timestamp = np.full(len(batch), self._now_ms, np.int64)
        if "timestamp" in names:
            given = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            timestamp = np.where(
                given.is_null().to_numpy(zero_copy_only=False),
                timestamp,
                pc.fill_null(given, 0).to_numpy(zero_copy_only=False) // 1000,
            )
        return Rows(
            key=_bytes(batch, "key"),
            value=_bytes(batch, "value"),
            timestamp=timestamp,
            headers=batch.column("headers").cast(pa.list_(HEADER_TYPE)) if "headers" in names else None,
        )


class PartitionCounts:
    """The number of partitions of each topic."""

    def __init__(self, ask: Callable[[Sequence[str]], Sequence[TopicPartition]]) -> None:
        self._ask = ask
        self._known: dict[str, int] = {}

    def __call__(self, topic: str) -> int:
        if topic not in self._known:
            self._known[topic] = len(self._ask([topic]))
        return self._known[topic]


def take(rows: Rows, places: np.ndarray) -> Rows:
    """The rows at these positions, in their order."""
    if len(places) == len(rows):
        return rows
    those = pa.array(places)
    return Rows(
        key=rows.key.take(those),
        value=rows.value.take(those),
        timestamp=rows.timestamp[places],
        headers=None if rows.headers is None else rows.headers.take(those),
    )


def _bytes(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(len(batch), pa.binary())
    return batch.column(name).cast(pa.binary())
