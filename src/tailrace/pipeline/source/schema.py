"""The columns of Spark's kafka source, by their names and types in Spark.

They are Spark's own objects rather than a line of SQL: to read that, a session would first have to make its parser.
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

header_type: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
spark_types: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(header_type),
}


def row_schema(*, headers: bool) -> StructType:
    return StructType([StructField(name, type) for name, type in spark_types.items() if headers or name != "headers"])


def checked_columns(schema: StructType, *, headers: bool) -> list[str]:
    """The names asked for, each of the right type."""
    for one in schema:
        if one.name not in spark_types:
            raise PipelineFailed(f"there is no column {one.name}; there are {', '.join(spark_types)}")
        given, right = one.dataType.simpleString(), spark_types[one.name].simpleString()
        if given != right:
            raise PipelineFailed(f"the schema does not fit: {one.name} is {right}, not {given}")
        if one.name == "headers" and not headers:
            raise PipelineFailed('headers are read only with option("includeHeaders", "true")')
    return [one.name for one in schema]
