"""`to_postgres`: write the records of topics to a table, until stopped or up to the records that exist now."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.json_rows import BROKEN_NAME, PARSED_NAME
from tailrace.pipeline.option_names import NO_OPTIONS, access_of, with_bootstrap
from tailrace.pipeline.postgres.columns import (
    KEY_COLUMNS,
    RECORD_COLUMNS,
    Column,
    columns_of,
    insert_sql,
    progress_sql,
    quoted,
    quoted_table,
    table_sql,
)

if TYPE_CHECKING:
    from psycopg import Connection
    from pyspark.sql import DataFrame, SparkSession


def to_postgres(
    spark: "SparkSession",
    bootstrap: str,
    *,
    topics: str,
    dsn: str,
    table: str,
    checkpoint: str,
    schema: str = "",
    available_now: bool = False,
    trigger_s: float = 10.0,
    options: Mapping[str, str] = NO_OPTIONS,
) -> None:
    """Write topics (names separated by commas) to a table, which is created if it does not exist.

    With `schema`, in DDL, the fields of the JSON in each value become columns; if a value is not JSON, they are null.
    """
    from tailrace.pipeline.postgres.writer import DSN_OPTION, PostgresSink

    with access_of(bootstrap, options).cluster() as cluster:
        cluster.partitions([name.strip() for name in topics.split(",")])
    reader = spark.readStream.format("tailrace").options(**with_bootstrap(bootstrap, options))
    frame = reader.option("subscribe", topics).option("startingOffsets", "earliest").load()
    rows = _with_fields(frame, schema).select(
        *(name for name, _ in RECORD_COLUMNS), *([f"{PARSED_NAME}.*"] if schema else [])
    )
    prepare_tables(dsn, table, columns_of(rows.schema))
    spark.dataSource.register(PostgresSink)
    writer = rows.writeStream.format(PostgresSink.name()).option(DSN_OPTION, dsn).option("table", table)
    trigger = {"availableNow": True} if available_now else {"processingTime": f"{trigger_s} seconds"}
    query = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _with_fields(frame: "DataFrame", schema: str) -> "DataFrame":
    from pyspark.sql import functions as f

    if not schema:
        return frame
    told = f"{schema}, {BROKEN_NAME} string"
    parsed = f.from_json(f.col("value").cast("string"), told, {"columnNameOfCorruptRecord": BROKEN_NAME})
    return frame.withColumn(PARSED_NAME, parsed.dropFields(BROKEN_NAME))


def prepare_tables(dsn: str, table: str, columns: Sequence[Column]) -> None:
    """Create the tables if they do not exist, and check that an existing table has the columns and the key needed."""
    import psycopg

    try:
        with psycopg.connect(dsn) as connection:
            connection.execute(table_sql(table, columns))
            connection.execute(progress_sql(table))
            _demand_fit(connection, table, columns)
    except psycopg.Error as error:
        raise PipelineFailed(f"cannot use table {table}: {str(error).strip()}") from None


def _demand_fit(connection: "Connection", table: str, columns: Sequence[Column]) -> None:
    from psycopg.errors import InvalidColumnReference

    there = connection.execute(f"SELECT * FROM {quoted_table(table)} WHERE false").description or ()
    missing = [one.name for one in columns if one.name not in [column.name for column in there]]
    if missing:
        raise PipelineFailed(f"table {table} exists, but has no column {', '.join(missing)}")
    try:
        connection.execute(
            insert_sql(table, columns, f"{quoted_table(table)} WHERE false")
        )  # the INSERT that the tasks will run, without any rows
    except InvalidColumnReference:
        keys = ", ".join(map(quoted, KEY_COLUMNS))
        raise PipelineFailed(
            f"table {table} exists, but has no unique key on ({keys}): ALTER TABLE {quoted_table(table)} "
            f"ADD PRIMARY KEY ({keys}), or create a unique index on exactly these columns"
        ) from None
