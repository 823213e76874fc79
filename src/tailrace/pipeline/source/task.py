"""What a Spark task does: read its range of offsets, and return Arrow batches to Spark."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.damaged import columns_of, refuse
from tailrace.pipeline.kafka.fetching import Range, fetch
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

    def rows(self, wanted: Range | None) -> Iterator[pa.RecordBatch]:
        """The rows of a range. Spark passes None when no range was planned: no rows then."""
        if wanted is None:
            return
        with self.access.cluster() as cluster:
            while wanted.start < wanted.end:
                if not self.fail_on_data_loss:
                    wanted = still_there(cluster, wanted)
                try:
                    for rows, after in self._rows(cluster, wanted):
                        yield rows
                        wanted = replace(wanted, start=after)
                    return
                except DataLost as lost:
                    if self.fail_on_data_loss:
                        raise DataLost(f"{lost}. {ADVICE}") from None

    def _rows(self, cluster: Cluster, wanted: Range) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The rows of a range in Arrow batches, each with the offset after its last row."""
        on_damaged = Quarantine(Path(self.quarantine)) if self.quarantine else refuse
        for chosen in fetch(
            cluster, wanted, committed=self.committed, max_bytes=self.fetch_bytes, on_damaged=on_damaged
        ):
            for columns in columns_of(chosen, wanted.partition, on_damaged, headers=self.headers):
                inside = columns.within(wanted.start, wanted.end)
                if len(inside):
                    yield to_rows(inside, *wanted.partition, self.columns), int(inside.offset[-1]) + 1


def still_there(cluster: Cluster, wanted: Range) -> Range:
    """The part of a range that is still in the log; an empty range if the log starts after it or ends before it."""
    of = wanted.partition
    first = start_offsets(cluster, [of])[of]
    last = end_offsets(cluster, [of], committed=False)[of]
    return replace(wanted, start=max(first, wanted.start), end=min(last, wanted.end))


ADVICE: Final = (
    "Records that were to be read are gone, most likely by retention. To go on with what is there, set "
    'option("failOnDataLoss", "false").'
)
GONE_ADVICE: Final = 'To go on without it, set option("failOnDataLoss", "false").'
