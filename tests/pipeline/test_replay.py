"""History → topic: byte for byte, once, and from where it was interrupted."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.cli.main import main
from tailrace.pipeline import archive, replay
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.transactions import init_transactions
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.test_histories import two_days
from tests.pipeline.test_sink import records, values_in_topic, write_one
from tests.pipeline.topics import FIRST_TIME, make_topic, remove_topic, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def past(spark: "SparkSession", broker: Broker, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of a topic `sales` with two partitions."""
    folder = tmp_path_factory.mktemp("past") / "history"
    make_topic(cluster, "sales", 2)
    for partition in range(2):
        write(cluster, "sales", two_days(40), partition=partition)
    archive(spark, broker.bootstrap, folder, topics=["sales"], available_now=True)
    return folder


def odd_records(number: int) -> list[NewRecord]:
    """What a careless copy would change."""
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    return [
        NewRecord(None, b"k%d" % number, timestamp=FIRST_TIME),
        NewRecord(b"", None, timestamp=FIRST_TIME - 10 * 24 * 3_600_000),
        NewRecord(b"\0" * 3000, b"", (("a", None), ("a", b""), (name, b"\xff")), FIRST_TIME + 1),
        NewRecord(b"x", b"y", timestamp=-1),
    ]


def test_archive_delete_replay_gives_the_same_bytes(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic, 2)
    for number, codec in enumerate(COMPRESSIONS):
        write(cluster, topic, odd_records(number), partition=number % 2, compression=codec)
    before = [records(cluster, topic, partition) for partition in range(2)]
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    remove_topic(cluster, topic)
    make_topic(cluster, topic, 2)
    words = ["pipeline", "replay", str(tmp_path / "h"), "--bootstrap", broker.bootstrap, "--topic", topic]
    assert main([*words, "--into", topic, "--keep-partition", "--keep-timestamp"]) == 0
    after = [records(cluster, topic, partition) for partition in range(2)]
    assert [[one._replace(offset=0) for one in part] for part in after] == [
        [one._replace(offset=0) for one in part] for part in before
    ]


def test_it_goes_on_where_it_was_and_writes_nothing_twice(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, past: Path
) -> None:
    make_topic(cluster, topic)
    again: dict[str, Any] = {"topic": "sales", "into": topic, "replay_id": topic}
    assert replay(spark, past, broker.bootstrap, end="15", **again) == 30
    # A run that died left a transaction open, with records in it that nobody shall see.
    write_one(cluster, init_transactions(cluster, f"tailrace-replay-{topic}-sales-0", 60_000), topic, b"half done")
    assert replay(spark, past, broker.bootstrap, **again) == 50
    assert replay(spark, past, broker.bootstrap, **again) == 0
    assert values_in_topic(cluster, topic) == sorted([one.value or b"" for one in two_days(40)] * 2)


def test_by_offset_time_and_key(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, past: Path
) -> None:
    make_topic(cluster, topic, 3)
    told: dict[str, Any] = {"topic": "sales", "into": topic}
    assert replay(spark, past, broker.bootstrap, start="10", end="20", key="key 3", **told) == 2 * 2
    assert replay(spark, past, broker.bootstrap, start="2023-11-15T12:00", **told) == 2 * 20
    keys = {record.key for partition in range(3) for record in records(cluster, topic, partition)}
    assert keys == {b"key %d" % number for number in range(7)}


def test_by_a_condition_in_sql_once(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, past: Path
) -> None:
    make_topic(cluster, topic, 2)
    told: dict[str, Any] = {
        "topic": "sales",
        "into": topic,
        "where": "cast(value as string) like 'value 1%'",
        "keep_partition": True,
    }
    assert [replay(spark, past, broker.bootstrap, **told) for _ in range(2)] == [22, 0]
    wanted = [one.value for one in two_days(40) if (one.value or b"").startswith(b"value 1")]
    assert [[record.value for record in records(cluster, topic, partition)] for partition in range(2)] == [wanted] * 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"topic": "never"}, "the history has no topic never; it has sales"),
        ({"into": "never-made"}, "there is no topic never-made"),
        ({"start": "soon"}, "'soon' is neither an offset nor a time"),
        ({"where": "offset > 5", "per_second": 10.0}, "a replay by a condition has no rate"),
    ],
)
def test_what_bad_input_gets(
    spark: "SparkSession", broker: Broker, past: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(PipelineFailed, match=said):
        replay(spark, past, broker.bootstrap, **({"topic": "sales", "into": "sales"} | changed))
