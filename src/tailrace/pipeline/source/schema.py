"""The columns of Spark's kafka source, with their Spark names and types.

The types are Spark objects rather than a DDL string: to parse DDL, a session would first have to create its parser.
"""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tailrace.pipeline.failure import PipelineFailed

HEADER_TYPE: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SPARK_TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(HEADER_TYPE),
}


def row_schema(*, headers: bool) -> StructType:
    return StructType([StructField(name, type) for name, type in SPARK_TYPES.items() if headers or name != "headers"])


def checked_columns(schema: StructType, *, headers: bool) -> list[str]:
    """The names of the requested columns, after checking that each has the right type."""
    for one in schema:
        if one.name not in SPARK_TYPES:
            raise PipelineFailed(f"there is no column {one.name}; there are {', '.join(SPARK_TYPES)}")
        given, right = one.dataType.simpleString(), SPARK_TYPES[one.name].simpleString()
        if given != right:
            raise PipelineFailed(f"the schema does not fit: {one.name} is {right}, not {given}")
        if one.name == "headers" and not headers:
            raise PipelineFailed('headers are read only with option("includeHeaders", "true")')
    return [one.name for one in schema]
