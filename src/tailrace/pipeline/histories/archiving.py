"""The archive as a streaming query: our reader plans offsets, each task archives a range and tells Spark what it did.

The rows that Spark sees are the tasks' manifests, one a range; records never leave the Python worker. Spark does what
it is good at: it plans, schedules, repeats what failed, and keeps in its checkpoint which offsets each batch has.
"""

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.histories.delta_log import checkpoint_name, own_folder
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.fetching import Range
from tailrace.pipeline.source.options import ReadOptions, read_options
from tailrace.pipeline.source.stream import StreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

to_option = "historyFolder"
row_schema = pa.schema([("manifest", pa.string())])


class ArchivingReader(StreamReader):
    def __init__(self, options: ReadOptions, folder: str) -> None:
        super().__init__(options, None)
        self._folder = folder
        self._if_lost = (
            f"The history in {folder} holds what was archived before, and cannot go on without a gap: archive to "
            "another folder"
        )
        self._if_gone = (
            f"To go on without it, remove {Path(folder) / own_folder / checkpoint_name}: each partition then goes on "
            "where its history ends"
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        try:
            done = self._archive(partition.value)
        except DataLost as lost:
            raise DataLost(f"{lost}. {self._if_lost}") from None
        yield pa.RecordBatch.from_arrays([pa.array([done.to_json()])], schema=row_schema)

    def _archive(self, wanted: Range) -> ArchivedRange:
        with self._options.access.cluster() as cluster:
            return archive_range(
                cluster,
                wanted,
                Path(self._folder),
                committed=self._options.committed,
                quarantine=Path(self._options.quarantine) if self._options.quarantine else None,
            )


class ArchivingSource(DataSource):
    """Not for people: `archive` uses it."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = dict(options)

    @classmethod
    def name(cls) -> str:
        return "tailrace_archiving"

    def schema(self) -> str:
        return "manifest string"

    def streamReader(self, schema: "StructType") -> ArchivingReader:  # noqa: N802 Spark's name
        given = dict(self.options)
        folder = given.pop(to_option.lower())
        return ArchivingReader(read_options(given, "stream"), folder)
