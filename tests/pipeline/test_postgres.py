"""A topic into a real PostgreSQL: every record once, whatever is repeated."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.postgres.job import to_postgres
from tailrace.pipeline.postgres.writer import DSN_OPTION
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.topics import FIRST_TIME, make_topic, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(dsn) as connection:
        found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return found


def test_each_record_once_over_lost_checkpoints(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, dsn: str
) -> None:
    make_topic(cluster, topic, 2)
    told: dict[str, Any] = {"topics": topic, "dsn": dsn, "table": "orders", "schema": "customer string, total int"}
    for number in range(2):
        record = NewRecord(b'{"customer": "ada", "total": %d}' % number, b"k", timestamp=FIRST_TIME)
        write(cluster, topic, [record, NewRecord(b"no order", None, timestamp=FIRST_TIME)], partition=number)
        # A checkpoint that is lost makes the query begin anew: what is there already is passed over.
        to_postgres(spark, broker.bootstrap, checkpoint=str(tmp_path / str(number)), available_now=True, **told)
    found = rows(dsn, 'SELECT "partition", "offset", customer, total, value FROM orders ORDER BY 1, 2')
    assert found == [
        (0, 0, "ada", 0, b'{"customer": "ada", "total": 0}'), (0, 1, None, None, b"no order"),
        (1, 0, "ada", 1, b'{"customer": "ada", "total": 1}'), (1, 1, None, None, b"no order"),
    ]  # fmt: skip
    assert rows(dsn, 'SELECT "partition", next_offset FROM orders_progress ORDER BY 1') == [(0, 2), (1, 2)]
    assert rows(dsn, "SELECT DISTINCT extract(epoch FROM timestamp) * 1000 FROM orders") == [(FIRST_TIME,)]


def test_what_postgres_cannot_hold_stops_nothing(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, dsn: str
) -> None:
    make_topic(cluster, topic)
    values = [b'{"name": "a\\u0000b", "n": 1}', b'{"name": "\\ud800", "n": 2}', b'{"name": "\xff", "n": 3}']
    write(cluster, topic, [NewRecord(value, timestamp=FIRST_TIME) for value in values])
    write(cluster, topic, [NewRecord(b'{"name": "far", "n": 4}', timestamp=-(2**50))])
    told: dict[str, Any] = {"topics": topic, "dsn": dsn, "table": topic, "schema": "name string, n int"}
    to_postgres(spark, broker.bootstrap, checkpoint=str(tmp_path / "c"), available_now=True, **told)
    found = rows(dsn, f'SELECT n, name, value, timestamp IS NULL FROM "{topic}" ORDER BY "offset"')
    assert [(n, value, is_null) for n, _, value, is_null in found] == [
        *((number, value, False) for number, value in enumerate(values, 1)), (4, b'{"name": "far", "n": 4}', True),
    ]  # fmt: skip
    assert [name for _, name, _, _ in found][::3] == [None, "far"]


def test_spark_shows_no_password_where_it_shows_options(spark: "SparkSession") -> None:
    jvm: Any = spark._jvm
    given = {DSN_OPTION: "postgresql://tester:pencil@db/shop", "table": "orders"}
    shown = spark._jsparkSession.sessionState().conf().redactOptions(jvm.PythonUtils.toScalaMap(given)).toString()
    assert ("table -> orders" in shown, "pencil" in shown) == (True, False)


def test_a_table_that_does_not_fit_is_refused(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, dsn: str
) -> None:
    make_topic(cluster, topic)
    to_postgres(
        spark,
        broker.bootstrap,
        topics=topic,
        dsn=dsn,
        table="plain",
        checkpoint=str(tmp_path / "a"),
        available_now=True,
    )
    told: dict[str, Any] = {"topics": topic, "dsn": dsn, "checkpoint": str(tmp_path / "b"), "available_now": True}
    with pytest.raises(PipelineFailed, match="has no column colour"):
        to_postgres(spark, broker.bootstrap, table="plain", schema="colour string", **told)
    with pytest.raises(PipelineFailed, match="make it a string"):
        to_postgres(spark, broker.bootstrap, table="other", schema="colours array<string>", **told)
