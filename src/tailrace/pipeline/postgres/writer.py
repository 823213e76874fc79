"""The sink that Spark asks for: each task writes in one database transaction."""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from tailrace.pipeline.postgres.columns import Column, column_list, columns_of, insert_sql, quoted_table
from tailrace.pipeline.postgres.unsupported_values import null_unsupported

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

DSN_OPTION: Final = "dsnsecret"  # Spark shows options in plans, except those with "secret" in their name
STAGING_TABLE: Final = "pg_temp.tailrace_fresh"  # a temporary table with the task's rows, dropped at commit


class PostgresWriter(DataSourceStreamArrowWriter):
    def __init__(self, dsn: str, table: str, columns: Sequence[Column]) -> None:
        self._dsn, self._table, self._columns = dsn, table, list(columns)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        import psycopg

        with psycopg.connect(self._dsn) as connection, connection.cursor() as cursor:
            ends: dict[tuple[str, int], int] = {}
            names = column_list(self._columns)
            like = f"SELECT {names} FROM {quoted_table(self._table)} WITH NO DATA"
            cursor.execute(f"CREATE TEMPORARY TABLE {STAGING_TABLE} ON COMMIT DROP AS {like}")
            with cursor.copy(f"COPY {STAGING_TABLE} ({names}) FROM STDIN") as copy:
                for batch in iterator:
                    for row in zip(*(null_unsupported(column).to_pylist() for column in batch.columns), strict=True):
                        copy.write_row(row)
                    _advance(ends, batch)
            self._insert_staged(cursor, ends)
        return WriterCommitMessage()

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 Spark's name
        """Do nothing: each task has committed its own transaction, and repeating a task changes nothing."""

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Do nothing: committed rows cannot be rolled back, and need not be, because the batch will be repeated."""

    def _insert_staged(self, cursor: Any, ends: dict[tuple[str, int], int]) -> None:
        cursor.execute(insert_sql(self._table, self._columns, STAGING_TABLE))
        progress = quoted_table(f"{self._table}_progress")
        for (topic, partition), after in sorted(ends.items()):
            cursor.execute(
                f"INSERT INTO {progress} VALUES (%s, %s, %s) ON CONFLICT (topic, partition) DO UPDATE "
                f"SET next_offset = greatest({progress}.next_offset, excluded.next_offset)",
                (topic, partition, after),
            )


class PostgresSink(DataSource):
    """Internal: only `to_postgres` uses this data source."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return "tailrace_postgres"

    def streamWriter(self, schema: "StructType", overwrite: bool) -> PostgresWriter:  # noqa: N802
        return PostgresWriter(self.options[DSN_OPTION], self.options["table"], columns_of(schema))


def _advance(ends: dict[tuple[str, int], int], batch: pa.RecordBatch) -> None:
    names = ("topic", "partition", "offset")
    for topic, partition, offset in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
        ends[topic, partition] = max(ends.get((topic, partition), 0), offset + 1)
