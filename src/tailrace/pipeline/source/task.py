"""What a task does: read its range, and hand Arrow batches to Spark."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tailrace.pipeline.access import Access
from tailrace.pipeline.crash_points import here
from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.damaged import columns_of, refuse
from tailrace.pipeline.kafka.fetching import Range, fetch
from tailrace.pipeline.kafka.offsets import start_offsets
from tailrace.pipeline.quarantine import Quarantine
from tailrace.pipeline.source.rows import to_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """All that a worker needs; it travels there."""

    access: Access
    columns: tuple[str, ...]
    committed: bool
    headers: bool
    fail_on_data_loss: bool
    fetch_bytes: int
    quarantine: str  # the folder for damaged batches; empty: they are a failure

    def rows(self, wanted: Range | None) -> Iterator[pa.RecordBatch]:
        """The rows of a range; none of None, which Spark makes up where no range was planned."""
        if wanted is None:
            return
        with self.access.cluster() as cluster:
            while True:
                try:
                    yield from self._rows(cluster, wanted)
                    return
                except DataLost as lost:
                    if self.fail_on_data_loss:
                        raise DataLost(f"{lost}. {advice}") from None
                    first = start_offsets(cluster, [wanted.partition])[wanted.partition]
                    wanted = Range(partition=wanted.partition, start=max(first, wanted.start), end=wanted.end)
                    if wanted.start >= wanted.end:
                        return

    def _rows(self, cluster: Cluster, wanted: Range) -> Iterator[pa.RecordBatch]:
        on_damaged = Quarantine(Path(self.quarantine)) if self.quarantine else refuse
        for chosen in fetch(
            cluster, wanted, committed=self.committed, max_bytes=self.fetch_bytes, on_damaged=on_damaged
        ):
            for columns in columns_of(chosen, wanted.partition, on_damaged, headers=self.headers):
                inside = columns.within(wanted.start, wanted.end)
                if len(inside):
                    yield to_rows(inside, *wanted.partition, self.columns)
                    here("source: rows read")


advice = (
    "Records that were to be read are gone, most likely by retention. To go on with what is there, set "
    'option("failOnDataLoss", "false").'
)
