"""Check one file of a history against the log: the file exists, is complete, and has the records that were written.

The checksum of the bytes detects any change to the file. The content checksum, recomputed from what a Parquet reader
returns, also shows that the records read are the records meant to be written. Increasing offsets are checked
separately: if records were written in the wrong order, their checksums still match. The checks run in Spark tasks, one
per file.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from tailrace.pipeline.histories.checksum import ContentChecksum, sync_and_sum
from tailrace.pipeline.histories.manifest import HistoryFile


def wrong_with(folder: Path, file: HistoryFile) -> str:
    """What is wrong with a file, in a sentence; empty when nothing is."""
    path = folder / file.path
    if not path.is_file():
        return "missing"
    size, crc = sync_and_sum(path)
    if size != file.size:
        return f"it has {size} bytes, and had {file.size}"
    if crc != file.crc:
        return f"its checksum is {crc:08x}, and was {file.crc:08x}"
    return _wrong_inside(path, file)


def _wrong_inside(path: Path, file: HistoryFile) -> str:
    content, count, last = ContentChecksum(), 0, -1
    with pq.ParquetFile(path, page_checksum_verification=True) as parquet:
        for batch in parquet.iter_batches(columns=["key", "value", "offset", "timestamp", "headers"]):
            offsets = batch.column("offset").to_numpy(zero_copy_only=False)
            if not rises(offsets, last):
                return "its records are not in the order of their offsets"
            content.add(batch)
            count, last = count + len(batch), int(offsets[-1]) if len(batch) else last
    if count != file.count:
        return f"it has {count} records, and had {file.count}"
    if content.value != file.content:
        return "its records are not those that were written"
    return ""


def rises(offsets: np.ndarray, last: int) -> bool:
    """Whether the offsets are strictly increasing, and all greater than `last`."""
    return bool((np.diff(offsets, prepend=last) > 0).all())


def check_file(told: dict[str, Any], folder: str) -> tuple[str, str]:
    """For `run_tasks`: return a file's path, and what is wrong with the file."""
    file = HistoryFile(**told)
    return file.path, wrong_with(Path(folder), file)
