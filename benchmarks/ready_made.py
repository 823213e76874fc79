"""A Spark source with prepared rows: only the transfer to the JVM is left, a bound on what any source can reach."""

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from benchmarks.spark_loads import PARTITIONS, Load, one_batch
from tailrace.client.visible_batches import select_visible
from tailrace.pipeline.arrow.columns import decode
from tailrace.pipeline.source.rows import to_rows
from tailrace.pipeline.source.schema import SPARK_TYPES, row_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FETCH_BYTES = 4 * 1024 * 1024  # the size of our source's fetches


class ReadyReader(DataSourceReader):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        numbers = {name: int(options[name]) for name in ("record_bytes", "per_batch", "batches")}
        self._load = Load(topic="ready", **numbers)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raw, _ = one_batch(self._load)
        at_once = max(1, min(self._load.batches, FETCH_BYTES // len(raw)))
        columns = decode(select_visible(raw * at_once))
        assert columns is not None
        names = [name for name in SPARK_TYPES if name != "headers"]
        rows = to_rows(columns, "ready", partition.value, names)
        for _ in range(self._load.batches // at_once):
            yield rows
        left = self._load.batches % at_once
        if left:
            yield rows.slice(0, left * self._load.per_batch)


class ReadySource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return "ready_made"

    def schema(self) -> "StructType":
        return row_schema(headers=False)

    def reader(self, schema: "StructType") -> ReadyReader:
        return ReadyReader(self.options)
