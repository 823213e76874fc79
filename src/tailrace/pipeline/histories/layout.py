"""The layout of a history's files: their columns, folders and names.

Timestamps are kept in milliseconds as in the log, and header names as bytes. Each record keeps its producer id, epoch
and sequence, so that a replay loses nothing and an audit can check producer sequences.
"""

from datetime import UTC, datetime
from typing import Final

import numpy as np
import pyarrow as pa

from tailrace.pipeline.arrow.columns import Columns
from tailrace.pipeline.arrow.header_columns import HEADER_TYPE
from tailrace.pipeline.kafka.cluster import TopicPartition

DAY_MS: Final = 24 * 60 * 60 * 1000
DAYS_MAX: Final = 2_932_896  # the last day of the year 9999
FILE_SCHEMA: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(HEADER_TYPE)),
        ("producerId", pa.int64()),
        ("producerEpoch", pa.int32()),
        ("sequence", pa.int32()),
    ]
)
NUMBER_COLUMNS: Final = (
    "offset", "timestamp", "partition", "timestampType", "producerId", "producerEpoch", "sequence",
)  # fmt: skip


def to_table(columns: Columns, partition: int) -> pa.Table:
    """The records of one partition as a table in the file schema."""
    batches = columns.batches
    ids = np.array([batch.producer_id for batch in batches], np.int64)[columns.batch]
    epochs = np.array([batch.producer_epoch for batch in batches], np.int32)[columns.batch]
    arrays = [
        columns.key,
        columns.value,
        pa.array(np.full(len(columns), partition, np.int32)),
        pa.array(columns.offset),
        pa.array(columns.timestamp).view(pa.timestamp("ms", "UTC")),
        pa.array(columns.timestamp_type),
        columns.headers,
        pa.array(ids),
        pa.array(epochs),
        pa.array(_sequences(columns)),
    ]
    return pa.Table.from_arrays(arrays, schema=FILE_SCHEMA)


def _sequences(columns: Columns) -> np.ndarray:
    """The producer sequence of each record; -1 where there is none. Sequences wrap around after 2³¹ - 1."""
    base = np.array([batch.base_sequence for batch in columns.batches], np.int64)[columns.batch]
    first = np.array([batch.base_offset for batch in columns.batches], np.int64)[columns.batch]
    numbers = (base + columns.offset - first) & 0x7FFFFFFF
    return np.where(base < 0, -1, numbers).astype(np.int32)


def days(timestamps: np.ndarray) -> np.ndarray:
    """The day of each timestamp, counted from 1970-01-01, and clamped to the years 1970 to 9999."""
    return np.clip(timestamps // DAY_MS, 0, DAYS_MAX)


def date_of(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date().isoformat()


def file_path(partition: TopicPartition, date: str, start: int, end: int) -> str:
    """The path of a file. It depends only on the range and date, so a task that is retried writes the same file."""
    return f"topic={partition.topic}/date={date}/{partition.partition:05d}-{start:020d}-{end:020d}.parquet"
