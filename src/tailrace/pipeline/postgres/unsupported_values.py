"""Replaces values that PostgreSQL or Python cannot represent with null, so that they do not stop the query for ever.

PostgreSQL's text cannot hold NUL characters, but JSON strings can. Python's dates cover the years 1 to 9999, but a
record's timestamp can be any number. The column `value` still has the original bytes of the record's value.
"""

from datetime import UTC, date, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

UTC_TIMESTAMP: Final = pa.timestamp("us", "UTC")


def null_unsupported(column: pa.Array) -> pa.Array:
    """The column, with null where a value does not fit."""
    if pa.types.is_string(column.type):
        return _where(pc.invert(pc.match_substring(column, "\0")), column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(
            UTC_TIMESTAMP
        )  # Spark uses the session's time zone, in which Python's date range ends some hours earlier
        return _within(column, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    if pa.types.is_date(column.type):
        return _within(column, date.min, date.max)
    return column


def _within(column: pa.Array, first: date, last: date) -> pa.Array:
    lowest, highest = pa.scalar(first, column.type), pa.scalar(last, column.type)
    return _where(pc.and_(pc.greater_equal(column, lowest), pc.less_equal(column, highest)), column)


def _where(fits: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(fits, column, pa.scalar(None, column.type))
