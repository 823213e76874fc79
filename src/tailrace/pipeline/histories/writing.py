"""Archive one range of offsets: fetch, decode, and write Parquet, all within the Python worker.

There is one file for each day that the records' timestamps fall on, usually just one. A file is written under a
temporary name that nobody reads, synced, and then renamed; a task that is retried uses the same names.

Offsets that have no record are noted with the reason. A batch that spans offsets without having records for them was
compacted. Offsets that are in no batch are explained only by a `cleanup.policy` that includes compact, now; otherwise
they are noted as unexplained, so that an audit finds them.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.client.visible_batches import merge_adjacent
from tailrace.model.limits import MiB
from tailrace.pipeline.arrow.columns import Columns
from tailrace.pipeline.failure import RecordsDamaged
from tailrace.pipeline.histories.checksum import ContentChecksum, sync_and_sum
from tailrace.pipeline.histories.final_names import rename_to_final
from tailrace.pipeline.histories.layout import FILE_SCHEMA, date_of, days, file_path, to_table
from tailrace.pipeline.histories.manifest import ArchivedRange, Gap, HistoryFile, gaps_between
from tailrace.pipeline.histories.offset_spans import Runs, add_run, runs
from tailrace.pipeline.kafka.cleanup_policy import compacted_topics
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.damaged import Damaged, decode_response
from tailrace.pipeline.kafka.fetching import OffsetRange, fetch
from tailrace.pipeline.quarantine import Quarantine

ARCHIVE_FETCH_BYTES: Final = 16 * MiB
ROW_GROUP_BYTES: Final = 16 * MiB


class DayFile:
    """Writes the records of one day of a range to a Parquet file."""

    def __init__(self, folder: Path, path: str, date: str) -> None:
        self._folder, self._path, self._date = folder, path, date
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        self._fresh = (folder / path).with_name(f".{Path(path).name}.{uuid4().hex}")
        self._writer = pq.ParquetWriter(
            self._fresh,
            FILE_SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=["partition", "timestampType", "producerId", "producerEpoch"],
            write_statistics=["offset", "timestamp", "partition"],
            write_page_checksum=True,
        )
        self._checksum = ContentChecksum()
        self._waiting: list[pa.Table] = []  # until there is enough for a row group
        self._waiting_bytes = 0
        self._offsets: list[tuple[int, int]] = []
        self._times: list[tuple[int, int]] = []
        self._count = 0

    def add(self, table: pa.Table, offset: np.ndarray, timestamp: np.ndarray) -> None:
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write_row_group()
        self._checksum.add(table)
        self._offsets.append((int(offset[0]), int(offset[-1])))
        self._times.append((int(timestamp.min()), int(timestamp.max())))
        self._count += len(table)

    @property
    def content(self) -> int:
        return self._checksum.value

    def finish(self, is_compacted: Callable[[], bool] = lambda: False) -> HistoryFile:
        """Close the file and give it its final name. `is_compacted`: whether its records come from a compacted log."""
        self._write_row_group()
        first, last = self._offsets[0][0], self._offsets[-1][1]
        told = {"first": first, "last": last, "count": self._count, "content": self._checksum.value}
        self._writer.add_key_value_metadata({f"tailrace.{name}": str(value) for name, value in told.items()})
        self._writer.close()
        size, crc = sync_and_sum(self._fresh)
        file = HistoryFile(
            path=self._path,
            size=size,
            crc=crc,
            content=self._checksum.value,
            count=self._count,
            first=first,
            last=last,
            earliest_ms=min(earliest for earliest, _ in self._times),
            latest_ms=max(latest for _, latest in self._times),
            date=self._date,
        )
        return rename_to_final(self._folder, self._fresh, file, is_compacted)

    def _write_row_group(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            self._writer.write_table(table, row_group_size=len(table))
            self._waiting, self._waiting_bytes = [], 0

    def discard(self) -> None:
        self._writer.close()
        self._fresh.unlink(missing_ok=True)


def archive_range(
    cluster: Cluster, requested: OffsetRange, folder: Path, *, quarantine: Path | None = None
) -> ArchivedRange:
    """Write the records of a range; return what was written. A damaged batch is an error unless `quarantine` is set."""
    is_compacted = partial(_is_compacted, cluster, requested.partition.topic)
    on_damaged = Quarantine(quarantine) if quarantine is not None else _refuse
    files: dict[str, DayFile] = {}
    skipped: list[Gap] = []
    present: Runs = []  # offsets that are accounted for
    spanned: Runs = []  # offsets of the log's batches
    try:
        for visible in fetch(cluster, requested, committed=True, max_bytes=ARCHIVE_FETCH_BYTES, on_damaged=on_damaged):
            for header in (one for _, one in visible.batches if one.base_offset < requested.end):
                add_run(spanned, header.base_offset, min(header.last_offset + 1, requested.end))
            for one in merge_adjacent(visible.skipped):
                skipped += _gap(requested, one.first, one.last, one.reason)
            for columns in decode_response(visible, requested.partition, on_damaged, headers=True):
                inside = columns.within(requested.start, requested.end)
                if len(inside):
                    present += runs(inside.offset)
                    _write(inside, requested, folder, files)
    except BaseException:
        for file in files.values():
            file.discard()
        raise
    for damaged in on_damaged.found if isinstance(on_damaged, Quarantine) else ():
        skipped += _gap(requested, damaged.first, damaged.last, "quarantined")
    done = tuple(files[date].finish(is_compacted) for date in sorted(files))
    if any(files[one.date].content != one.content for one in done):  # another attempt's file was adopted
        present = [run for one in done for run in runs(_offsets_in(folder / one.path))]
    present += [(gap.first, gap.last + 1) for gap in skipped]
    gaps = skipped + _removed(cluster, requested, present, spanned)
    return ArchivedRange(
        topic=requested.partition.topic,
        partition=requested.partition.partition,
        start=requested.start,
        end=requested.end,
        count=sum(file.count for file in done),
        gaps=tuple(sorted(gaps, key=lambda gap: gap.first)),
        files=done,
    )


def _refuse(found: Damaged) -> None:
    raise RecordsDamaged(
        f"{found}. A healthy replica may have them; to archive the others, set these aside: --quarantine, or "
        "quarantine=True from Python"
    )


def _gap(requested: OffsetRange, first: int, last: int, reason: str) -> list[Gap]:
    first, last = max(first, requested.start), min(last, requested.end - 1)
    return [Gap(first=first, last=last, reason=reason)] if first <= last else []


def _offsets_in(path: Path) -> np.ndarray:
    return pq.read_table(path, columns=["offset"], partitioning=None).column("offset").to_numpy()


def _is_compacted(cluster: Cluster, topic: str) -> bool:
    return bool(compacted_topics(cluster, [topic]))


def _removed(cluster: Cluster, requested: OffsetRange, present: Runs, spanned: Runs) -> list[Gap]:
    """Offsets that the log does not have, in a range read to its end. Only compaction deletes between other records."""
    start, end = requested.start, requested.end
    holes = gaps_between(sorted(present + spanned), start, end, "unexplained")
    if holes and not _is_compacted(cluster, requested.partition.topic):
        explained = sorted(present + [(gap.first, gap.last + 1) for gap in holes])
        return holes + gaps_between(explained, start, end, "compaction")
    return gaps_between(sorted(present), start, end, "compaction")


def by_day(columns: Columns, partition: int) -> list[tuple[str, pa.Table, np.ndarray]]:
    """The records as one table per day, each with the positions of its records in `columns`."""
    table, day = to_table(columns, partition), days(columns.timestamp)
    if day[0] == day[-1] and (day == day[0]).all():
        return [(date_of(int(day[0])), table, np.arange(len(table)))]
    places = [(int(one), np.flatnonzero(day == one)) for one in np.unique(day)]
    return [(date_of(one), table.take(pa.array(those)), those) for one, those in places]


def _write(columns: Columns, requested: OffsetRange, folder: Path, files: dict[str, DayFile]) -> None:
    for date, table, places in by_day(columns, requested.partition.partition):
        if date not in files:
            files[date] = DayFile(folder, file_path(requested.partition, date, requested.start, requested.end), date)
        files[date].add(table, columns.offset[places], columns.timestamp[places])
