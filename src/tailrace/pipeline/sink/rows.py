"""Rows of a DataFrame as records: which columns mean what, and to which partition each goes.

`value` is needed, `key`, `headers`, `topic`, `partition` and `timestamp` may be there. Text is written as UTF-8. A
row without a partition goes where its key belongs, as Kafka's own clients would send it; without a key as well, all
of a task's rows of one Arrow batch go to the same partition, the next batch's to the next. As in Spark's own sink, an
option `topic` wins over the column: rows that came from one topic go to another without a select.
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

ALLOWED: Final = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
    "headers": ("array<struct<key:string,value:binary>>", "array<struct<key:binary,value:binary>>"),
}
LEFT_OUT: Final = ("offset", "timestampType")  # of a source's rows: the broker gives new ones


def check_schema(schema: "StructType", topic: str) -> None:
    """Refuse columns that mean nothing here, or are of another type than they could be written as."""
    names = [one.name for one in schema]
    for one in schema:
        if one.name in LEFT_OUT:
            continue
        if one.name not in ALLOWED:
            raise PipelineFailed(_unknown(one.name))
        if (given := one.dataType.simpleString()) not in ALLOWED[one.name]:
            raise PipelineFailed(f"the column {one.name} is {given}; it has to be {' or '.join(ALLOWED[one.name])}")
    if "value" not in names:
        raise PipelineFailed("there has to be a column value")
    if "topic" not in names and not topic:
        raise PipelineFailed('where to? Give option("topic", "orders"), or a column topic')


def _unknown(name: str) -> str:
    near = get_close_matches(name.lower(), ALLOWED, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there may be {', '.join(ALLOWED)}; leave it out with a select"
    return f"a column {name} cannot be written; {hint}"


class Sorting:
    """Sorts rows by the partition they go to."""

    def __init__(self, topic: str, now_ms: int) -> None:
        self._topic, self._now_ms = topic, now_ms
        self._turn = 0  # of keyless batches

    def sorted(self, batch: pa.RecordBatch, counts: "Counts") -> Iterator[tuple[TopicPartition, Rows]]:
        """The rows of a batch by partition; within one in their order."""
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


class Counts:
    """How many partitions topics have."""

    def __init__(self, ask: Callable[[Sequence[str]], Sequence[TopicPartition]]) -> None:
        self._ask = ask
        self._known: dict[str, int] = {}

    def __call__(self, topic: str) -> int:
        if topic not in self._known:
            self._known[topic] = len(self._ask([topic]))
        return self._known[topic]


def take(rows: Rows, places: np.ndarray) -> Rows:
    """Those at these places, in their order."""
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
