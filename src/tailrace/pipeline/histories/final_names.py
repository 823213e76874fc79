"""Give a finished file its final name, which another attempt at the same range may have used already.

The name contains the offset range, so a task that is retried, or runs twice at the same time, uses the same name. The
first attempt gets the name. If the existing file holds the same records, a later attempt adopts it, so that all
attempts report the same bytes, whichever attempt is committed. If it holds other records, an archive crashed before
committing it, and it is replaced. A committed file is never replaced: the attempt fails, but it was abandoned long
ago.
"""

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.checksum import sync_and_sum
from tailrace.pipeline.histories.delta_log import read_log
from tailrace.pipeline.histories.file_checks import wrong_with
from tailrace.pipeline.histories.manifest import HistoryFile


def rename_to_final(folder: Path, fresh: Path, file: HistoryFile) -> HistoryFile:
    """Rename a file that was written as `fresh`. Return the file that has the final name now."""
    try:
        os.link(fresh, folder / file.path)
    except FileExistsError:
        return _resolve_taken_name(folder, fresh, file)
    finally:
        fresh.unlink(missing_ok=True)
    return file


def _resolve_taken_name(folder: Path, fresh: Path, file: HistoryFile) -> HistoryFile:
    if file.path in read_log(folder).live:
        raise PipelineFailed(
            f"{file.path} is in the history already, and was left as it is. Does another archive write here?"
        )
    size, crc = sync_and_sum(folder / file.path)
    there = replace(file, size=size, crc=crc)
    if _has_same_records(folder, there):
        return there
    fresh.replace(folder / file.path)
    return file


def _has_same_records(folder: Path, there: HistoryFile) -> bool:
    try:
        return not wrong_with(folder, there)
    except (OSError, pa.ArrowException):  # the file cannot be read at all
        return False
