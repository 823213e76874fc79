"""Give a finished file its name, which another attempt at the same range may have given to its own before.

The name says which offsets it has, so a task that is repeated, or runs twice at the same time, comes to the same name.
The first has it. Who comes later takes what is there for its own if it holds the same records, so that all attempts say
the same of its bytes, whichever of them is committed. Other records are of an archive that died before its commit: they
are replaced. What the history lives by is never replaced; the attempt fails, and was given up long ago.
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


def give_name(folder: Path, fresh: Path, file: HistoryFile) -> HistoryFile:
    """Rename a file that was written as `fresh`; what is there under its name now."""
    try:
        os.link(fresh, folder / file.path)
    except FileExistsError:
        return _come_second(folder, fresh, file)
    finally:
        fresh.unlink(missing_ok=True)
    return file


def _come_second(folder: Path, fresh: Path, file: HistoryFile) -> HistoryFile:
    if file.path in read_log(folder).live:
        raise PipelineFailed(f"{file.path} is in the history already, and was left as it is: who else archives to it?")
    size, crc = sync_and_sum(folder / file.path)
    there = replace(file, size=size, crc=crc)
    if _holds_the_same(folder, there):
        return there
    fresh.replace(folder / file.path)
    return file


def _holds_the_same(folder: Path, there: HistoryFile) -> bool:
    try:
        return not wrong_with(folder, there)
    except (OSError, pa.ArrowException):  # it cannot be read at all
        return False
