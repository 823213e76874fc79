"""Compare the records of one archived range with the live log, offset by offset.

It is done for ranges whose checksums differ. In a compacted log that is usual: records are missing that a later one has
superseded. What must not be is a record that the history has otherwise, one that it does not have, or one that cannot
be read. Compaction also leaves a trace: a batch without records spans the offsets of removed ones. Where the log has no
batch at all (Apache Kafka leaves such holes), only the topic's `cleanup.policy` can explain it.

Log and files are read side by side in the order of their offsets, a fetch response at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tailrace.pipeline.histories.checksum import ContentChecksum
from tailrace.pipeline.histories.layout import to_table
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.offset_order import read_in_offset_order
from tailrace.pipeline.histories.offset_spans import Runs, Spans, add_run, outside, spans
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.damaged import Damaged, decode_response
from tailrace.pipeline.kafka.fetching import OffsetRange, fetch

COMPARED_COLUMNS = ("offset", "key", "value", "timestamp", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeDifference:
    """What differs between log and history in one range; losses as spans of offsets, and what is usual as numbers."""

    unlike: Spans  # both have a record, and not the same
    unarchived: Spans  # only the log has a record
    unreadable: Spans  # the history has records, and the log a batch that cannot be read
    removed: int  # records that only the history has
    in_no_batch: int  # those of them at whose offsets the log has no batch either


def compare_records(cluster: Cluster, one: ArchivedRange, folder: Path) -> RangeDifference:
    files = [folder / file.path for file in one.files]
    archived = ArchivedRecords(read_in_offset_order(files) if files else iter(()))
    damaged: list[Damaged] = []
    seen = [np.zeros(0, np.int64)]  # offsets of the log's records
    batches: Runs = []
    unlike: list[int] = []
    requested = OffsetRange(partition=one.of, start=one.start, end=one.end)
    for visible in fetch(cluster, requested, committed=True, on_damaged=damaged.append):
        for _, header in visible.batches:
            add_run(batches, header.base_offset, header.last_offset + 1)
        batches += [(skipped.first, skipped.last + 1) for skipped in visible.skipped]
        for columns in decode_response(visible, one.of, damaged.append, headers=True):
            inside = columns.within(one.start, one.end)
            if len(inside):
                seen.append(inside.offset)
                table = to_table(inside, one.partition)
                unlike += unlike_offsets(table, archived.through(int(inside.offset[-1])))
    bad = [(found.first, found.last + 1) for found in damaged]
    in_log, in_history = np.concatenate(seen), archived.all_offsets()
    removed = outside(np.setdiff1d(in_history, in_log, assume_unique=True), bad)
    return RangeDifference(
        unlike=spans(np.array(unlike, np.int64)),
        unarchived=spans(np.setdiff1d(in_log, in_history, assume_unique=True)),
        unreadable=spans(np.setdiff1d(in_history, outside(in_history, bad), assume_unique=True)),
        removed=len(removed),
        in_no_batch=len(outside(removed, batches)),
    )


class ArchivedRecords:
    """The records of a range's files, taken in pieces in the order of their offsets."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._waiting: list[pa.Table] = []
        self._offsets = [np.zeros(0, np.int64)]  # of everything that was read

    def through(self, last: int) -> list[pa.Table]:
        """The next records, up to this offset."""
        while not self._waiting or self._waiting[-1].column("offset")[-1].as_py() < last:
            if not self._read_more():
                break
        taken, waiting = [], []
        for table in self._waiting:
            count = int(np.searchsorted(_offsets(table), last, side="right"))
            taken.append(table.slice(0, count))
            waiting += [table.slice(count)] if count < len(table) else []
        self._waiting = waiting
        return taken

    def all_offsets(self) -> np.ndarray:
        """The offsets of all records, those that were not taken included."""
        while self._read_more():
            self._waiting.clear()
        return np.concatenate(self._offsets)

    def _read_more(self) -> bool:
        table = next(self._tables, None)
        if table is None:
            return False
        if len(table):
            self._offsets.append(_offsets(table))
            self._waiting.append(table.select(COMPARED_COLUMNS))
        return True


def unlike_offsets(log: pa.Table, archived: Sequence[pa.Table]) -> list[int]:
    """The offsets at which both have a record, and not the same."""
    ours = pa.concat_tables(archived) if archived else log.slice(0, 0)
    in_log, in_history = _offsets(log), _offsets(ours)
    theirs = log.filter(pa.array(np.isin(in_log, in_history)))
    ours = ours.filter(pa.array(np.isin(in_history, in_log)))
    if _checksum(theirs) == _checksum(ours):
        return []
    pairs = zip(_offsets(theirs).tolist(), _rows(theirs), _rows(ours), strict=True)
    return [offset for offset, one, other in pairs if one != other]


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [table.column(name) for name in COMPARED_COLUMNS]
    plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    return list(zip(*(column.to_pylist() for column in plain), strict=True))


def _checksum(table: pa.Table) -> int:
    content = ContentChecksum()
    content.add(table)
    return content.value


def _offsets(table: pa.Table) -> np.ndarray:
    return table.column("offset").to_numpy()
