"""What a Spark task does: read its range of offsets, and return Arrow batches to Spark."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.damaged import decode_response, raise_damaged
from tailrace.pipeline.kafka.fetching import OffsetRange, fetch
from tailrace.pipeline.kafka.offsets import end_offsets, start_offsets
from tailrace.pipeline.quarantine import Quarantine
from tailrace.pipeline.source.rows import to_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """The settings of a read that are sent to the Python workers."""

    access: Access
    columns: tuple[str, ...]
    committed: bool
    headers: bool
    fail_on_data_loss: bool
    fetch_bytes: int
    quarantine: str  # the folder for damaged batches; empty: a damaged batch fails the task

    def rows(self, requested: OffsetRange | None) -> Iterator[pa.RecordBatch]:
        """The rows of a range. Spark passes None when no range was planned: no rows then."""
        if requested is None:
            return
        with self.access.cluster() as cluster:
            while requested.start < requested.end:
                if not self.fail_on_data_loss:
                    requested = available_part(cluster, requested)
                try:
                    for rows, after in self._rows(cluster, requested):
                        yield rows
                        requested = replace(requested, start=after)
                    return
                except DataLost as lost:
                    if self.fail_on_data_loss:
                        raise DataLost(f"{lost}. {ADVICE}") from None

    def _rows(self, cluster: Cluster, requested: OffsetRange) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The rows of a range in Arrow batches, each with the offset after its last row."""
        on_damaged = Quarantine(Path(self.quarantine)) if self.quarantine else raise_damaged
        for visible in fetch(
            cluster, requested, committed=self.committed, max_bytes=self.fetch_bytes, on_damaged=on_damaged
        ):
            for columns in decode_response(visible, requested.partition, on_damaged, headers=self.headers):
                inside = columns.within(requested.start, requested.end)
                if len(inside):
                    yield to_rows(inside, *requested.partition, self.columns), int(inside.offset[-1]) + 1


def available_part(cluster: Cluster, requested: OffsetRange) -> OffsetRange:
    """The part of a range that is still in the log; an empty range if the log starts after it or ends before it."""
    of = requested.partition
    first = start_offsets(cluster, [of])[of]
    last = end_offsets(cluster, [of], committed=False)[of]
    return replace(requested, start=max(first, requested.start), end=min(last, requested.end))


ADVICE: Final = (
    "Records that were to be read are gone, most likely by retention. To continue with the records that exist, set "
    'option("failOnDataLoss", "false").'
)
GONE_ADVICE: Final = 'To go on without it, set option("failOnDataLoss", "false").'
