"""Values that a table cannot hold, or Python cannot carry there: they become null, rather than stop the query for ever.

PostgreSQL's text has no zero characters, which JSON may have; Python's calendar has the years 1 to 9999, and a record's
timestamp may be any number. The record's value, as bytes, still says what there was.
"""

from datetime import UTC, date, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

UTC_TIMESTAMP: Final = pa.timestamp("us", "UTC")


def fitting(column: pa.Array) -> pa.Array:
    """The column, with null where a value does not fit."""
    if pa.types.is_string(column.type):
        return _where(pc.invert(pc.match_substring(column, "\0")), column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(
            UTC_TIMESTAMP
        )  # Spark gives it the session's zone, where the calendar ends some hours earlier
        return _within(column, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    if pa.types.is_date(column.type):
        return _within(column, date.min, date.max)
    return column


def _within(column: pa.Array, first: date, last: date) -> pa.Array:
    lowest, highest = pa.scalar(first, column.type), pa.scalar(last, column.type)
    return _where(pc.and_(pc.greater_equal(column, lowest), pc.less_equal(column, highest)), column)


def _where(fits: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(fits, column, pa.scalar(None, column.type))
