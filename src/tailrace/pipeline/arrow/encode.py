"""Encode Arrow columns as the records of a record batch, in bulk.

A record is a few varints, the key, a varint, the value, and the headers. Each of these is a column: numpy writes the
varints of all records at once, keys and values are columns already, and one element-wise join of the columns leaves
the records end to end in its buffer, which is the body of the batch.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipeline.arrow.varints import varint_sizes, write_varints

NO_BYTES: Final = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Records to write, as columns of one length."""

    key: pa.Array
    value: pa.Array
    timestamp: np.ndarray  # milliseconds since 1970
    headers: pa.Array | None = None  # lists of (name, value), both bytes

    def __len__(self) -> int:
        return len(self.timestamp)

    def slice(self, first: int, count: int) -> "Rows":
        return Rows(
            key=self.key.slice(first, count),
            value=self.value.slice(first, count),
            timestamp=self.timestamp[first : first + count],
            headers=None if self.headers is None else self.headers.slice(first, count),
        )


def encode_records(rows: Rows) -> pa.Buffer:
    """Encode the records end to end; the first record's timestamp is the batch's base timestamp."""
    count = len(rows)
    headers = _header_bytes(rows.headers, count)
    key_sizes, value_sizes = _sizes(rows.key), _sizes(rows.value)
    numbers = [rows.timestamp - rows.timestamp[0], np.arange(count, dtype=np.int64), key_sizes]
    value_size = _numbers_column([value_sizes])
    fields = 1 + sum(varint_sizes(column) for column in numbers) + varint_sizes(value_sizes)
    sizes = fields + np.maximum(key_sizes, 0) + np.maximum(value_sizes, 0) + _sizes(headers)
    head = _numbers_column([sizes, None, *numbers])
    joined = pc.binary_join_element_wise(
        head, rows.key, value_size, rows.value, headers, NO_BYTES, null_handling="replace", null_replacement=b""
    )
    edges = np.frombuffer(joined.buffers()[1], np.int32, count + 1, 4 * joined.offset)
    return joined.buffers()[2].slice(int(edges[0]), int(edges[-1] - edges[0]))


def record_sizes(rows: Rows) -> np.ndarray:
    """An estimate of the bytes that each record takes, never too low."""
    headers = 0 if rows.headers is None else _header_room(rows.headers)
    return 30 + np.maximum(_sizes(rows.key), 0) + np.maximum(_sizes(rows.value), 0) + headers


def _sizes(column: pa.Array) -> np.ndarray:
    """The length of each binary value, -1 for null."""
    return pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers_column(numbers: list[np.ndarray | None]) -> pa.Array:
    """Encode several numbers per row as varints in one binary column; None stands for a zero byte."""
    first = next(column for column in numbers if column is not None)
    widths = [np.ones(len(first), np.int64) if column is None else varint_sizes(column) for column in numbers]
    edges = np.zeros(len(first) + 1, np.int64)
    np.cumsum(sum(widths), out=edges[1:])
    data = np.zeros(int(edges[-1]), np.uint8)
    at = edges[:-1]
    for column in numbers:
        at = at + 1 if column is None else write_varints(data, at, column)
    return _binary(edges, pa.py_buffer(data))


def _binary(edges: np.ndarray, data: pa.Buffer) -> pa.Array:
    offsets = pa.py_buffer(np.ascontiguousarray(edges, np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), len(edges) - 1, [None, offsets, data])


def _header_bytes(headers: pa.Array | None, count: int) -> pa.Array:
    """For each record, the number of its headers and the headers, encoded."""
    if headers is None:
        return _numbers_column([np.zeros(count, np.int64)])
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = headers.flatten()
    names, values = flat.field("key"), flat.field("value")
    joined = pc.binary_join_element_wise(
        _numbers_column([_sizes(names)]), names, _numbers_column([_sizes(values)]), values, NO_BYTES,
        null_handling="replace", null_replacement=b"",
    )  # fmt: skip
    if not len(flat):
        return _numbers_column([counts])
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(counts, out=begins[1:])
    edges = np.frombuffer(joined.buffers()[1], np.int32, len(flat) + 1, 4 * joined.offset)
    return pc.binary_join_element_wise(_numbers_column([counts]), _binary(edges[begins], joined.buffers()[2]), NO_BYTES)


def _header_room(headers: pa.Array) -> np.ndarray:
    lengths = _sizes(_header_bytes(headers, len(headers)))
    return np.maximum(lengths, 0)
