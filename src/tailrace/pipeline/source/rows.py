"""The rows that a reader returns to Spark: the columns of Spark's kafka source, or the subset that the job selects.

A column that is not selected is not built: `.schema("offset long, value binary")` makes a read a third faster.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipeline.arrow.columns import Columns

TIMESTAMP_MAX_MS: Final = (2**63 - 1) // 1000  # Spark counts in microseconds
HEADER_STRUCT: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(HEADER_STRUCT),
}


def to_rows(columns: Columns, topic: str, partition: int, wanted: Sequence[str]) -> pa.RecordBatch:
    """One Arrow batch with the wanted columns."""
    arrays = [_column(name, columns, topic, partition) for name in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(name, TYPES[name]) for name in wanted]))


def _column(name: str, columns: Columns, topic: str, partition: int) -> pa.Array:
    match name:
        case "key":
            return columns.key
        case "value":
            return columns.value
        case "topic":
            return pa.repeat(pa.scalar(topic, pa.string()), len(columns))
        case "partition":
            return pa.array(np.full(len(columns), partition, np.int32))
        case "offset":
            return pa.array(columns.offset)
        case "timestamp":
            microseconds = np.clip(columns.timestamp, -TIMESTAMP_MAX_MS, TIMESTAMP_MAX_MS) * 1000
            return pa.array(microseconds).view(TYPES["timestamp"])
        case "timestampType":
            return pa.array(columns.timestamp_type)
        case _:
            return _headers(columns.headers)


def _headers(lists: pa.ListArray) -> pa.Array:
    flat = lists.flatten()
    fields = [_text(flat.field("key")), flat.field("value")]
    begins = pc.subtract(lists.offsets, lists.offsets[0])
    return pa.ListArray.from_arrays(begins, pa.StructArray.from_arrays(fields, fields=list(HEADER_STRUCT)))


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:  # not valid UTF-8: replace the invalid bytes
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())
