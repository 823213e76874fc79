"""The archive as a streaming query: our reader plans offsets, each task archives a range and tells Spark what it did.

The rows that Spark sees are the tasks' manifests, one a range; records never leave the Python worker. Spark does what
it is good at: it plans, schedules, repeats what failed, and keeps in its checkpoint which offsets each batch has.
"""

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from tailrace.pipeline.histories.writing import archive_range
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

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        with self._options.access.cluster() as cluster:
            done = archive_range(
                cluster,
                partition.value,
                Path(self._folder),
                committed=self._options.committed,
                quarantine=Path(self._options.quarantine) if self._options.quarantine else None,
            )
        yield pa.RecordBatch.from_arrays([pa.array([done.to_json()])], schema=row_schema)


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
