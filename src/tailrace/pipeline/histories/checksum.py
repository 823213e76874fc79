"""A checksum of records that depends only on their content and order, not on their physical layout.

Each column has a running CRC-32C, of its numbers or of its lengths and bytes; the checksum is the CRC-32C of these. So
it can be computed over a stream of tables of any size: when records are archived, when a file is read again, and when
the same offsets are fetched from the live log.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.limits import MiB
from tailrace.records.crc import crc32c

READS_AT_ONCE_BYTES: Final = 4 * MiB


class ContentChecksum:
    def __init__(self, numbers: Sequence[str] = ("offset", "timestamp")) -> None:
        self._number_columns = numbers
        self._of: dict[str, int] = {}

    def add(self, table: pa.Table | pa.RecordBatch) -> None:
        """Add records in the schema of `layout.to_table`, or as read from a file of the history."""
        for name in self._number_columns:
            self._numbers(name, _numbers(table.column(name)))
        for name in ("key", "value"):
            self._bytes(name, table.column(name))
        lists = _whole(table.column("headers"))
        self._numbers("headers", _lengths(pc.list_value_length(lists)))
        flat = lists.flatten()
        for name in ("key", "value"):
            self._bytes(f"headers.{name}", flat.field(name))

    @property
    def value(self) -> int:
        packed = b"".join(struct.pack(">I", self._of[name]) for name in sorted(self._of))
        return int(crc32c(packed))

    def _numbers(self, name: str, numbers: np.ndarray) -> None:
        raw = np.ascontiguousarray(numbers, "<i8").tobytes()
        self._of[name] = crc32c(raw, self._of.get(name, 0))

    def _bytes(self, name: str, column: pa.Array | pa.ChunkedArray) -> None:
        array = _whole(column)
        self._numbers(f"{name}.lengths", _lengths(pc.binary_length(array)))
        if len(array):
            edges = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
            data = array.buffers()[2]
            raw = memoryview(data)[int(edges[0]) : int(edges[-1])] if data is not None else b""
            self._of[name] = crc32c(raw, self._of.get(name, 0))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _numbers(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    array = _whole(column)
    return (array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_numpy(zero_copy_only=False)


def _lengths(column: pa.Array) -> np.ndarray:
    return pc.fill_null(column, -1).to_numpy(zero_copy_only=False)


def sync_and_sum(path: Path) -> tuple[int, int]:
    """Sync a file to disk. Return its size and the CRC-32C of its bytes."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        size, crc = 0, 0
        while piece := file.read(READS_AT_ONCE_BYTES):
            size, crc = size + len(piece), crc32c(piece, crc)
    return size, crc
