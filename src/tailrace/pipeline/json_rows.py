"""`parse_json`: JSON values as columns, and values that are not valid JSON as rows for a quarantine topic."""

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

PARSED_NAME: Final = "data"
BROKEN_NAME: Final = "_broken"
REASON_HEADER: Final = "quarantine-reason"


class Parsed(NamedTuple):
    rows: "DataFrame"  # the input columns, and `data`
    bad: "DataFrame"  # key, value and headers of rows that could not be parsed, ready for the sink


def parse_json(frame: "DataFrame", schema: "str | StructType | None" = None) -> Parsed:
    """Read the column `value` as JSON: as a struct of `schema` (in DDL, or a `StructType`), or as VARIANT without one.

    A null value stays null; an empty value is not valid JSON. Both frames may be batch or streaming: write `rows` to
    their destination, and `bad` to a topic that people check."""
    from pyspark.sql import functions as f

    text = f.col("value").cast("string")
    is_bad = f.col("value").isNotNull() & f.col(PARSED_NAME).isNull()
    if schema is None:
        with_data = frame.withColumn(PARSED_NAME, f.expr("try_parse_json(cast(value as string))"))
    else:
        told = _with_broken(schema)
        with_data = frame.withColumn(PARSED_NAME, f.from_json(text, told, {"columnNameOfCorruptRecord": BROKEN_NAME}))
        is_bad = is_bad | f.col(f"{PARSED_NAME}.{BROKEN_NAME}").isNotNull()
    reason = f.lit(f"no JSON{'' if schema is None else ' of ' + _said(schema)}").cast("binary")
    headers = f.array(f.struct(f.lit(REASON_HEADER).alias("key"), reason.alias("value")))
    bad = with_data.where(is_bad).select("key", "value", headers.alias("headers"))
    rows = with_data.where(~f.coalesce(is_bad, f.lit(False)))
    if schema is not None:
        rows = rows.withColumn(PARSED_NAME, f.col(PARSED_NAME).dropFields(BROKEN_NAME))
    return Parsed(rows, bad)


def _with_broken(schema: "str | StructType") -> "str | StructType":
    """The schema plus one field for the text of a value that does not match the schema."""
    from pyspark.sql.types import StringType, StructField, StructType

    if isinstance(schema, str):
        return f"{schema}, {BROKEN_NAME} string"
    return StructType([*schema.fields, StructField(BROKEN_NAME, StringType())])


def _said(schema: "str | StructType") -> str:
    return schema if isinstance(schema, str) else schema.simpleString()
