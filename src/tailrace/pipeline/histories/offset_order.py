"""Read the files of one archived range in offset order.

Usually a range has one file, and its row groups are passed on as they are. If the timestamps fall on several days, the
range has several files whose offsets interleave. Each file's current row group has a last offset; records up to the
lowest of these are complete, so they are sorted and passed on.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def read_in_offset_order(paths: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield tables of records whose offsets increase across all tables."""
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
