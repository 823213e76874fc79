"""The columns of the table: the record's own, and the fields of the JSON in its value, if a schema is given."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tailrace.pipeline.failure import PipelineFailed

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

POSTGRES_TYPES: Final = {
    "string": "text", "int": "integer", "bigint": "bigint", "double": "double precision", "float": "real",
    "boolean": "boolean", "timestamp": "timestamptz", "date": "date", "binary": "bytea", "smallint": "smallint",
}  # fmt: skip
RECORD_COLUMNS: Final = (
    ("topic", "text"), ("partition", "integer"), ("offset", "bigint"), ("timestamp", "timestamptz"), ("key", "bytea"),
    ("value", "bytea"),
)  # fmt: skip
KEY_COLUMNS: Final = ("topic", "partition", "offset")


class Column(NamedTuple):
    name: str
    type: str  # PostgreSQL's name of the type


def columns_of(schema: "StructType") -> list[Column]:
    """The table's columns for rows of this schema."""
    known = dict(RECORD_COLUMNS)
    found = []
    for one in schema:
        said = one.dataType.simpleString()
        if one.name not in known and said not in POSTGRES_TYPES:
            raise PipelineFailed(f"a column {one.name} of type {said} has no place in PostgreSQL; make it a string")
        found.append(Column(one.name, known.get(one.name) or POSTGRES_TYPES[said]))
    return found


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """The quoted name of a table; a part before a dot is its schema."""
    return ".".join(map(quoted, name.split(".")))


# There is one row per topic, partition and offset: a task that Spark runs again inserts its rows again, to no effect.
_KEYS: Final = ", ".join(map(quoted, KEY_COLUMNS))
_PRIMARY_KEY: Final = f"PRIMARY KEY ({_KEYS})"
_ON_CONFLICT: Final = f"ON CONFLICT ({_KEYS}) DO NOTHING"


def column_list(columns: Sequence[Column]) -> str:
    return ", ".join(quoted(one.name) for one in columns)


def table_sql(table: str, columns: Sequence[Column]) -> str:
    body = ", ".join(f"{quoted(one.name)} {one.type}" for one in columns)
    return f"CREATE TABLE IF NOT EXISTS {quoted_table(table)} ({body}, {_PRIMARY_KEY})"


def insert_sql(table: str, columns: Sequence[Column], source: str) -> str:
    """Insert the rows of `source`, except those that the table already has.

    Only a conflict on the topic, partition and offset is skipped: a violation of another constraint is an error.
    """
    names = column_list(columns)
    return f"INSERT INTO {quoted_table(table)} ({names}) SELECT {names} FROM {source} {_ON_CONFLICT}"


def progress_sql(table: str) -> str:
    name = quoted_table(f"{table}_progress")
    return (
        f"CREATE TABLE IF NOT EXISTS {name} "
        '("topic" text, "partition" integer, "next_offset" bigint, PRIMARY KEY ("topic", "partition"))'
    )
