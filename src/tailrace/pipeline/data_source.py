"""The data source that Spark finds as `format("tailrace")`.

Spark also imports this module in processes that only look for data sources or ask for the schema, so the code that
reads and writes is imported only when a reader or writer is created.
"""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from tailrace.pipeline.catalog_tables import refuse_tables
from tailrace.pipeline.source.schema import row_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from tailrace.pipeline.sink.writer import BatchWriter, StreamWriter
    from tailrace.pipeline.source.batch import BatchReader
    from tailrace.pipeline.source.stream import StreamReader


class TailraceSource(DataSource):
    """Topics of Tailrace, or of any broker that speaks Kafka's protocol."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = dict(options)

    @classmethod
    def name(cls) -> str:
        return "tailrace"

    def schema(self) -> "StructType":
        refuse_tables(self.options)
        return row_schema(headers=self.options.get("includeheaders", "false").lower() == "true")

    def reader(self, schema: "StructType") -> "BatchReader":
        from tailrace.pipeline.source.batch import batch_reader
        from tailrace.pipeline.source.options import read_options

        return batch_reader(read_options(self.options, "batch"), schema)

    def streamReader(self, schema: "StructType") -> "StreamReader":  # noqa: N802 Spark's name
        from tailrace.pipeline.source.options import read_options
        from tailrace.pipeline.source.stream import StreamReader

        return StreamReader(read_options(self.options, "stream"), schema)

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchWriter":
        from tailrace.pipeline.sink.options import write_options
        from tailrace.pipeline.sink.writer import BatchWriter

        return BatchWriter(write_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":  # noqa: N802
        from tailrace.pipeline.sink.options import write_options
        from tailrace.pipeline.sink.writer import StreamWriter

        return StreamWriter(write_options(self.options), schema)


def register(spark: "SparkSession") -> None:
    """Register the data source where Spark cannot find it by itself: with the package shipped by `--py-files`."""
    spark.dataSource.register(TailraceSource)
