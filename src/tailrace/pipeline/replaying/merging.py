"""The files of one archived range, read in the order of offsets.

Mostly there is one, and its row groups come as they are. Where timestamps fell on several days there are several, whose
offsets interleave: what is surely complete, up to the lowest last offset that has been read of each, is sorted and
handed on.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def in_order(paths: Sequence[Path]) -> Iterator[pa.Table]:
    """Tables of records whose offsets rise from first to last."""
    readers = [_row_groups(path) for path in paths]
    if len(readers) == 1:
        yield from readers[0]
        return
    waiting: list[pa.Table | None] = [next(reader, None) for reader in readers]
    while any(table is not None for table in waiting):
        safe = min(table.column("offset")[-1].as_py() for table in waiting if table is not None)
        parts = []
        for number, table in enumerate(waiting):
            if table is None:
                continue
            count = pc.sum(pc.less_equal(table.column("offset"), safe)).as_py()
            parts.append(table.slice(0, count))
            rest = table.slice(count)
            waiting[number] = rest if len(rest) else next(readers[number], None)
        yield pa.concat_tables(parts).sort_by("offset")


def _row_groups(path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number)
