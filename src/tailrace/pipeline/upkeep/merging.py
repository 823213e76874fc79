"""The task that merges adjacent ranges into one range.

Every input file is checked against the log while it is read, and every output file is read back. Within a day, the
files are read in the order of their ranges, so the records come out in offset order.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.checksum import ContentChecksum, sync_and_sum
from tailrace.pipeline.histories.file_checks import wrong_with
from tailrace.pipeline.histories.layout import FILE_SCHEMA, NUMBER_COLUMNS, file_path
from tailrace.pipeline.histories.manifest import ArchivedRange, HistoryFile, archived_range_from
from tailrace.pipeline.histories.writing import DayFile


def merge_ranges(told: Sequence[Mapping[str, Any]], folder: str) -> tuple[dict[str, Any] | None, str]:
    """For `run_tasks`: return the merged range, or a sentence that says what is wrong."""
    try:
        return merged([archived_range_from(one) for one in told], Path(folder)).to_dict(), ""
    except PipelineFailed as failed:
        return None, str(failed)


def merged(ranges: Sequence[ArchivedRange], folder: Path) -> ArchivedRange:
    """Merge consecutive ranges into one. `PipelineFailed` when a file is not as it was written."""
    first, last = ranges[0], ranges[-1]
    dates = sorted({file.date: None for one in ranges for file in one.files})
    files: list[HistoryFile] = []
    try:
        for date in dates:
            sources = [file for one in ranges for file in one.files if file.date == date]
            path = file_path(first.of, date, first.start, last.end)
            files.append(_one_file(folder, sources, path))
    except BaseException:
        for file in files:
            (folder / file.path).unlink(missing_ok=True)
        raise
    return ArchivedRange(
        topic=first.topic,
        partition=first.partition,
        start=first.start,
        end=last.end,
        count=sum(file.count for file in files),
        gaps=tuple(gap for one in ranges for gap in one.gaps),
        files=tuple(files),
    )


def _one_file(folder: Path, sources: Sequence[HistoryFile], path: str) -> HistoryFile:
    """Write the records of several files of one day into one file."""
    target = DayFile(folder, path, sources[0].date)
    everything = ContentChecksum(NUMBER_COLUMNS)
    try:
        for source in sources:
            _copy(folder, source, target, everything)
    except BaseException:
        target.discard()
        raise
    done = target.finish()
    wrong = _wrong_with_copy(folder, done, everything, sources)
    if wrong:
        (folder / path).unlink()
        raise PipelineFailed(f"{path} is not what was to be written: {wrong}")
    return done


def _copy(folder: Path, source: HistoryFile, target: DayFile, everything: ContentChecksum) -> None:
    path = folder / source.path
    if not path.is_file():
        raise PipelineFailed(f"{source.path} is not there")
    size, crc = sync_and_sum(path)
    content, count = ContentChecksum(), 0
    for table in _tables(path):
        content.add(table)
        everything.add(table)
        count += len(table)
        stamps = table.column("timestamp").cast(pa.int64())
        target.add(table, table.column("offset").to_numpy(), stamps.to_numpy())
    _demand_as_written(source, (size, crc, count, content.value))


def _demand_as_written(source: HistoryFile, found: tuple[int, int, int, int]) -> None:
    """Check that the file has the size, checksum, number of records and content that the history recorded for it."""
    if found != (source.size, source.crc, source.count, source.content):
        raise PipelineFailed(f"{source.path} is not as it was written; `tailrace pipeline audit` says more")


def _tables(path: Path) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number).cast(FILE_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise PipelineFailed(f"{path.name} cannot be read: {error}") from None


def _wrong_with_copy(
    folder: Path, done: HistoryFile, everything: ContentChecksum, sources: Sequence[HistoryFile]
) -> str:
    told = (sources[0].first, sources[-1].last, sum(one.count for one in sources))
    if (done.first, done.last, done.count) != told:
        return f"it has {done.count} records of offsets {done.first}…{done.last}, and should have {told}"
    again = ContentChecksum(NUMBER_COLUMNS)
    for table in _tables(folder / done.path):
        again.add(table)
    if again.value != everything.value:
        return "it has other records"
    return wrong_with(folder, done)
