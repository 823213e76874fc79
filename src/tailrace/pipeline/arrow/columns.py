"""Records as Arrow columns. Keys, values and headers are copied once, in bulk, out of the run's buffer."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.client.visible_batches import VisibleBatches
from tailrace.model.limits import DECODED_RUN_MAX_BYTES
from tailrace.pipeline.arrow.copy_spans import copy_spans
from tailrace.pipeline.arrow.fields import read_fields
from tailrace.pipeline.arrow.header_columns import header_lists
from tailrace.pipeline.arrow.record_positions import BatchRun, batch_runs, find_records
from tailrace.records.header import BatchHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Records as columns, in offset order."""

    offset: np.ndarray
    timestamp: np.ndarray  # milliseconds since 1970
    timestamp_type: np.ndarray
    key: pa.Array
    value: pa.Array
    headers: pa.Array | None  # lists of (name, value), both bytes; None if not requested
    batch: np.ndarray  # index of each record's batch
    batches: tuple[BatchHeader, ...]

    def __len__(self) -> int:
        return len(self.offset)

    def within(self, first: int, end: int) -> "Columns":
        """The records from offset `first` to `end`, exclusive."""
        low, high = np.searchsorted(self.offset, [first, end])
        if low == 0 and high == len(self):
            return self
        return Columns(
            offset=self.offset[low:high],
            timestamp=self.timestamp[low:high],
            timestamp_type=self.timestamp_type[low:high],
            key=self.key[low:high],
            value=self.value[low:high],
            headers=None if self.headers is None else self.headers[low:high],
            batch=self.batch[low:high],
            batches=self.batches,
        )


def decode_runs(
    visible: VisibleBatches, *, headers: bool = False, max_bytes: int = DECODED_RUN_MAX_BYTES
) -> Iterator[Columns]:
    """The records of the visible batches, in runs of about `max_bytes` at most. Same faults as `open_batch`."""
    if visible.batches:
        for run in batch_runs(visible.data, visible.batches, max_bytes):
            yield _columns(run, headers=headers)


def decode(visible: VisibleBatches, *, headers: bool = False) -> Columns | None:
    """Like `decode_runs`, for batches that are known to fit one run; None if there are no batches."""
    found = list(decode_runs(visible, headers=headers))
    assert len(found) <= 1, "batches are decoded at once that are too large for it"
    return found[0] if found else None


def _columns(run: BatchRun, *, headers: bool) -> Columns:
    found = find_records(run)
    fields = read_fields(found)
    lists = header_lists(found, fields) if headers or fields.header_counts.any() else None
    return Columns(
        offset=fields.offset,
        timestamp=fields.timestamp,
        timestamp_type=fields.timestamp_type,
        key=copy_spans(found.data, fields.key),
        value=copy_spans(found.data, fields.value),
        headers=lists if headers else None,
        batch=found.batch,
        batches=found.headers,
    )
