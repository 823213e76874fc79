"""Give a finished file its final name, which another attempt at the same range may have used already.

The name contains the offset range, so a task that is retried, or runs twice at the same time, uses the same name. The
first attempt gets the name. If the existing file holds the same records, a later attempt adopts it, so that all
attempts report the same bytes, whichever attempt is committed. If it holds other records, an archive crashed before
committing it, and it is replaced. A committed file is never replaced: the attempt fails, but it was abandoned long
ago.

A log that is compacted between two attempts gives them different records, all of them right. So a later attempt adopts
the existing file if both agree wherever both have a record, and reports what that file holds.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.checksum import ContentChecksum, sync_and_sum
from tailrace.pipeline.histories.delta_log import read_log
from tailrace.pipeline.histories.file_checks import rises, wrong_with
from tailrace.pipeline.histories.manifest import HistoryFile
from tailrace.pipeline.histories.offset_order import read_in_offset_order
from tailrace.pipeline.histories.record_comparison import ArchivedRecords, unlike_offsets


def rename_to_final(folder: Path, fresh: Path, file: HistoryFile, is_compacted: Callable[[], bool]) -> HistoryFile:
    """Rename a file that was written as `fresh`. Return the file that has the final name now."""
    try:
        os.link(fresh, folder / file.path)
    except FileExistsError:
        return _resolve_taken_name(folder, fresh, file, is_compacted)
    finally:
        fresh.unlink(missing_ok=True)
    return file


def _resolve_taken_name(folder: Path, fresh: Path, file: HistoryFile, is_compacted: Callable[[], bool]) -> HistoryFile:
    if file.path in read_log(folder).live:
        raise PipelineFailed(
            f"{file.path} is in the history already, and was left as it is. Does another archive write here?"
        )
    size, crc = sync_and_sum(folder / file.path)
    there = replace(file, size=size, crc=crc)
    if _has_same_records(folder, there):
        return there
    if is_compacted() and (other := _agreeing(folder, fresh, there)) is not None:
        return other
    fresh.replace(folder / file.path)
    return file


def _has_same_records(folder: Path, there: HistoryFile) -> bool:
    try:
        return not wrong_with(folder, there)
    except (OSError, pa.ArrowException):  # the file cannot be read at all
        return False


def _agreeing(folder: Path, fresh: Path, there: HistoryFile) -> HistoryFile | None:
    """The existing file with what it really holds; None if it is damaged or contradicts the fresh one."""
    try:
        found = _described(folder, there)
        ours = ArchivedRecords(read_in_offset_order([fresh]))
        for table in read_in_offset_order([folder / there.path]):
            if unlike_offsets(table, ours.through(table.column("offset")[-1].as_py())):
                return None
    except (OSError, pa.ArrowException):
        return None
    return found


def _described(folder: Path, there: HistoryFile) -> HistoryFile | None:
    content, offsets, times = ContentChecksum(), [], []
    for table in read_in_offset_order([folder / there.path]):
        content.add(table)
        offsets.append(table.column("offset").to_numpy())
        times.append(pc.min_max(table.column("timestamp").cast(pa.int64())).as_py())
    all_offsets = np.concatenate(offsets)
    written = pq.read_metadata(folder / there.path).metadata.get(b"tailrace.content")
    if not rises(all_offsets, -1) or written != str(content.value).encode():
        return None
    return replace(
        there,
        content=content.value,
        count=len(all_offsets),
        first=int(all_offsets[0]),
        last=int(all_offsets[-1]),
        earliest_ms=min(one["min"] for one in times),
        latest_ms=max(one["max"] for one in times),
    )
