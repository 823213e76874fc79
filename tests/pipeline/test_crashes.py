"""A process dies at each place that matters, and every record is there exactly once in the end."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipeline import archive, audit, history, replay
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.crash_places import crash_variables
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE_AND_SINK = [
    "source: offsets planned", "source: rows read", "sink: transaction begun", "sink: rows written",
    "sink: before the decision", "sink: decided", "sink: between two commits", "sink: committed", "sink: done",
]  # fmt: skip
ARCHIVE_TASK = ["archive: records fetched", "archive: files written"]
ARCHIVE_DRIVER = ["archive: before the commit", "archive: committed"]
REPLAY_TASK = ["replay: records written", "replay: offsets moved", "replay: committed"]


def one_after_another(places: list[str]) -> list[Any]:
    """All in a row, in one test, and each alone, which takes longer."""
    alone = [pytest.param([place], marks=pytest.mark.long, id=place) for place in places]
    return [pytest.param(places, id="all"), *alone]


def dying_at(places: list[str], crash_file: Path, run: Callable[[], object]) -> None:
    """Run it, again and again, each time dying at the next place; and then to its end."""
    for place in places:
        crash_file.write_text(place)
        with contextlib.suppress(Exception):
            run()
        assert not crash_file.exists(), f"nothing came by {place!r}"
    run()


def copy_now(spark: "SparkSession", broker: Broker, topic: str, checkpoint: Path, at_once: int = 1000) -> None:
    """Copy all that a topic has now, exactly once, `at_once` records in a batch."""
    reader = spark.readStream.format("tailrace").option("kafka.bootstrap.servers", broker.bootstrap)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", at_once).load().select("key", "value")
    writer = frame.writeStream.format("tailrace").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.option("topic", f"{topic}-out").option("exactlyOnce", "true").option("sinkId", topic)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination(200)


@pytest.mark.parametrize("places", one_after_another(SOURCE_AND_SINK))
def test_from_topic_to_topic(
    spark: "SparkSession",
    broker: Broker,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    crash_file: Path,
    places: list[str],
) -> None:
    make_topic(cluster, topic, 2)
    make_topic(cluster, f"{topic}-out")
    written = 0

    def run() -> None:
        """With records of its own each time: a batch that was decided is committed as soon as Spark gives it up."""
        nonlocal written
        for partition in range(2):
            write(cluster, topic, numbered(10, written), partition=partition)
        written += 10
        copy_now(spark, broker, topic, tmp_path)

    dying_at(places, crash_file, run)
    assert values_in_topic(cluster, f"{topic}-out") == sorted([one.value or b"" for one in numbered(written)] * 2)


@pytest.mark.parametrize("places", one_after_another(ARCHIVE_TASK))
def test_a_task_of_an_archive(
    spark: "SparkSession",
    broker: Broker,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    crash_file: Path,
    places: list[str],
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    dying_at(
        places,
        crash_file,
        lambda: archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True),
    )
    assert history(spark, tmp_path / "h").count() == 10
    assert audit(spark, tmp_path / "h").findings == ()


@pytest.mark.parametrize("place", ARCHIVE_DRIVER)
def test_the_driver_of_an_archive(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, place: str
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    place_file = tmp_path / "place"
    place_file.write_text(place)
    words = ["pipeline", "archive", "--bootstrap", broker.bootstrap, "--topics", topic, "--to", str(tmp_path / "h")]
    driver = subprocess.run(
        [sys.executable, "-m", "tailrace", *words, "--available-now", "--master", "local[1]"],
        env={**os.environ, **crash_variables(place_file)}, capture_output=True, timeout=100, check=False,
    )  # fmt: skip
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    write(cluster, topic, numbered(5, 10))
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    assert history(spark, tmp_path / "h").count() == 15
    assert audit(spark, tmp_path / "h", bootstrap=broker.bootstrap).findings == ()


@pytest.mark.parametrize("places", one_after_another(REPLAY_TASK))
def test_a_replay(
    spark: "SparkSession",
    broker: Broker,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    crash_file: Path,
    places: list[str],
) -> None:
    make_topic(cluster, topic)
    make_topic(cluster, f"{topic}-out")
    write(cluster, topic, numbered(10))
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    dying_at(
        places, crash_file, lambda: replay(spark, tmp_path / "h", broker.bootstrap, topic=topic, into=f"{topic}-out")
    )
    assert values_in_topic(cluster, f"{topic}-out") == sorted(one.value or b"" for one in numbered(10))
