"""Tables that were there before, and values that no table holds; a real PostgreSQL, and no Spark."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.postgres.columns import RECORD_COLUMNS, Column
from tailrace.pipeline.postgres.job import prepare_tables
from tailrace.pipeline.postgres.writer import PostgresWriter
from tests.pipeline.test_postgres import rows

columns = [Column(name, kind) for name, kind in RECORD_COLUMNS]
KEY = 'PRIMARY KEY ("topic", "partition", "offset")'


def make_table(dsn: str, name: str, *more: str) -> None:
    import psycopg

    body = ", ".join([*(f'"{column}" {kind}' for column, kind in RECORD_COLUMNS), *more])
    with psycopg.connect(dsn) as connection:
        connection.execute(f'CREATE TABLE "{name}" ({body})')


def a_batch(count: int, **changed: Any) -> pa.RecordBatch:
    told = {"topic": ["t"] * count, "partition": [0] * count, "offset": list(range(count))}
    moments = pa.array([0] * count, pa.timestamp("us", "America/New_York"))
    return pa.record_batch({**told, "timestamp": moments, "key": [b"k"] * count, "value": [b"v"] * count, **changed})


@pytest.mark.parametrize(
    "rule",
    ['PRIMARY KEY ("offset")', 'UNIQUE ("topic", "partition")', 'UNIQUE ("topic", "partition", "offset", "key")'],
)
def test_a_table_without_the_key_is_refused(dsn: str, topic: str, rule: str) -> None:
    make_table(dsn, topic, rule)
    with pytest.raises(PipelineFailed, match=r'ADD PRIMARY KEY \("topic", "partition", "offset"\)'):
        prepare_tables(dsn, topic, columns)


def test_a_table_with_columns_of_its_own(dsn: str, topic: str) -> None:
    make_table(dsn, topic, "id serial", "seen timestamptz NOT NULL DEFAULT now()", f"UNIQUE {KEY.split(' ', 2)[2]}")
    prepare_tables(dsn, topic, columns)
    for _ in range(2):
        PostgresWriter(dsn, topic, columns).write(iter([a_batch(3)]))
    assert rows(dsn, f'SELECT id, "offset" FROM "{topic}" ORDER BY 1') == [(1, 0), (2, 1), (3, 2)]


def test_a_table_in_a_schema(dsn: str, topic: str) -> None:
    import psycopg

    with psycopg.connect(dsn) as connection:
        connection.execute(f'CREATE SCHEMA "{topic}"')
    table = f"{topic}.Orders"
    for _ in range(2):
        prepare_tables(dsn, table, columns)
        PostgresWriter(dsn, table, columns).write(iter([a_batch(3)]))
    assert rows(dsn, f'SELECT count(*) FROM "{topic}"."Orders"') == [(3,)]
    assert rows(dsn, f'SELECT next_offset FROM "{topic}"."Orders_progress"') == [(3,)]
    with pytest.raises(PipelineFailed, match='schema "never_made" does not exist'):
        prepare_tables(dsn, "never_made.orders", columns)


def test_a_row_that_breaks_another_rule_is_not_dropped_without_a_word(dsn: str, topic: str) -> None:
    from psycopg.errors import UniqueViolation

    make_table(dsn, topic, KEY, 'UNIQUE ("value")')
    prepare_tables(dsn, topic, columns)
    with pytest.raises(UniqueViolation):
        PostgresWriter(dsn, topic, columns).write(iter([a_batch(2)]))


def test_what_no_table_holds_is_null(dsn: str, topic: str) -> None:
    fields = [Column("name", "text"), Column("day", "date")]
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
    edges = [int(pa.scalar(one, pa.timestamp("us", "UTC")).value) for one in (first, last)]
    moments = pa.array([edges[0] - 1, edges[0], edges[1], edges[1] + 1, None], pa.timestamp("us", "Pacific/Auckland"))
    days = pa.array([-719_163, -719_162, 2_932_896, 2_932_897, None], pa.date32())
    names = ["zero \0", "", "ünï", "\0", None]
    prepare_tables(dsn, topic, [*columns, *fields])
    batch = a_batch(5, timestamp=moments, value=[b"\0"] * 5, name=pa.array(names), day=days)
    PostgresWriter(dsn, topic, [*columns, *fields]).write(iter([batch]))
    sql = f'SELECT timestamp AT TIME ZONE \'UTC\', name, day FROM "{topic}" ORDER BY "offset"'
    nothing = (None, None, None)
    least, most = (first.replace(tzinfo=None), "", date.min), (last.replace(tzinfo=None), "ünï", date.max)
    assert rows(dsn, sql) == [nothing, least, most, nothing, nothing]
    assert rows(dsn, f'SELECT DISTINCT value FROM "{topic}"') == [(b"\0",)]
