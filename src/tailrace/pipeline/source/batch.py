"""A batch read: the records between starting and ending offsets, which are resolved when the query is planned.

Filters on topic, partition, offset and timestamp narrow the ranges before anything is read. Spark still applies the
filters to every row, so the ranges only have to contain every row that could match. A lower bound on the timestamp
narrows a range: no record before the first one at or after that time can match. An upper bound does not narrow
anything, because timestamps may be out of order.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, offsets_at, start_offsets
from tailrace.pipeline.source.filter_bounds import FilterBounds, bounds_of
from tailrace.pipeline.source.offset_spec import resolve
from tailrace.pipeline.source.options import ReadOptions
from tailrace.pipeline.source.range_planning import plan_ranges
from tailrace.pipeline.source.schema import checked_columns
from tailrace.pipeline.source.task import ADVICE, ReadTask

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class BatchReader(DataSourceReader):
    def __init__(self, options: ReadOptions, schema: "StructType") -> None:
        self._options = options
        self._task = read_task(options, schema)
        self._bounds = FilterBounds()

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with options.access.cluster() as cluster:
            all_of_them = options.subscription.partitions(cluster)
            wanted = [one for one in all_of_them if self._bounds.admits(one)]
            start = resolve(cluster, options.start, wanted, committed=options.committed)
            end = resolve(cluster, options.end, wanted, committed=options.committed)
            start, end = self._narrowed(cluster, start, end)
            start = clamp_to_log(cluster, start, end, options)
        found = plan_ranges(start, end, min_ranges=options.min_partitions, max_records=options.max_records)
        return [InputPartition(one) for one in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._task.rows(partition.value)

    def _narrowed(self, cluster: Cluster, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        bounds = self._bounds
        first = dict.fromkeys(start, bounds.first_offset)
        if bounds.earliest_ms is not None:
            late = offsets_at(cluster, dict.fromkeys(start, bounds.earliest_ms))
            first = {one: max(first[one], late[one]) if late[one] >= 0 else end[one] for one in start}
        # At most the end offset: a filter that no record can match gives an empty range, not a data loss error.
        start = {one: max(offset, min(first[one], end[one])) for one, offset in start.items()}
        return start, {one: max(start[one], min(offset, bounds.end_offset)) for one, offset in end.items()}


class FilteredBatchReader(BatchReader):
    """A `BatchReader` with filter pushdown. Spark rejects a reader with `pushFilters` where pushdown is disabled."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 Spark's name
        self._bounds = bounds_of(filters)
        return filters


def batch_reader(options: ReadOptions, schema: "StructType") -> BatchReader:
    main: Any = sys.modules.get("__main__")
    running = getattr(getattr(main, "__spec__", None), "name", "")
    takes_filters = running == PUSHDOWN_WORKER or PUSHDOWN_WORKER in sys.modules
    return (FilteredBatchReader if takes_filters else BatchReader)(options, schema)


def read_task(options: ReadOptions, schema: "StructType") -> ReadTask:
    columns = checked_columns(schema, headers=options.headers)
    return ReadTask(
        access=options.access,
        columns=tuple(columns),
        committed=options.committed,
        headers="headers" in columns,
        fail_on_data_loss=options.fail_on_data_loss,
        fetch_bytes=options.fetch_bytes,
        quarantine=options.quarantine,
    )


def clamp_to_log(cluster: Cluster, start: Offsets, end: Offsets, options: ReadOptions) -> Offsets:
    """Start offsets moved into the log. `DataLost` if offsets are missing and `failOnDataLoss` is true."""
    first = start_offsets(cluster, sorted(start))
    lost = [one for one in start if start[one] < first[one] and start[one] < end[one]]
    if options.fail_on_data_loss:
        for one in lost:
            raise DataLost(f"{one} was to be read from offset {start[one]}, but begins at {first[one]}. {ADVICE}")
        _refuse_beyond(cluster, end)
    return {one: max(start[one], first[one]) if start[one] < end[one] else start[one] for one in start}


def _refuse_beyond(cluster: Cluster, end: Offsets) -> None:
    last = end_offsets(cluster, sorted(end), committed=False)
    for one in end:
        if end[one] > last[one]:
            raise DataLost(f"{one} was to be read up to offset {end[one]}, but ends at {last[one]}. {ADVICE}")
