"""The driver is killed, with its JVM and its workers, when one of them comes to a place; another takes over.

Two of these are in `make test`, with the other crashes; here is every place.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline import archive, audit, history
from tailrace.pipeline.histories.delta_log import read_log
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.testing import Broker
from tests.pipeline.crash_places import crash_variables
from tests.pipeline.programs import root, run
from tests.pipeline.test_crashes import ARCHIVE_TASK, REPLAY_TASK, SOURCE_AND_SINK
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


def killed_at(place: str, words: Sequence[str], tmp_path: Path) -> None:
    """Run a driver that dies there, and another one to the end."""
    command = [sys.executable, "-m", *words]
    file = tmp_path / "place"
    driver = subprocess.Popen(command, cwd=root, env={**os.environ, **crash_variables(file)}, stderr=subprocess.DEVNULL)
    file.write_text(f"{place}\n{driver.pid}")  # long before it comes there
    assert driver.wait(400) == -signal.SIGKILL
    assert not file.exists()
    run(command, os.environ, root)


def in_topic(cluster: Cluster, topic: str) -> list[bytes]:
    """Records in two partitions, and their values."""
    make_topic(cluster, topic, 2)
    make_topic(cluster, f"{topic}-out")
    for partition in range(2):
        write(cluster, topic, numbered(10), partition=partition)
    return sorted([one.value or b"" for one in numbered(10)] * 2)


@pytest.mark.parametrize("place", SOURCE_AND_SINK)
def test_from_topic_to_topic(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, place: str) -> None:
    wanted = in_topic(cluster, topic)
    words = ["local[2]", broker.bootstrap, topic, f"{topic}-out", str(tmp_path / "checkpoint")]
    killed_at(place, ["tests.pipeline.copy_driver", *words], tmp_path)
    assert values_in_topic(cluster, f"{topic}-out") == wanted


@pytest.mark.parametrize("place", ARCHIVE_TASK)
def test_an_archive(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, place: str
) -> None:
    wanted = in_topic(cluster, topic)
    words = ["archive", "--bootstrap", broker.bootstrap, "--topics", topic, "--to", str(tmp_path / "h")]
    killed_at(place, ["tailrace", "pipeline", *words, "--available-now", "--master", "local[2]"], tmp_path)
    assert history(spark, tmp_path / "h").count() == len(wanted)
    assert audit(spark, tmp_path / "h", bootstrap=broker.bootstrap).findings == ()


def test_an_archive_that_goes_on_until_ctrl_c(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    words = ["archive", "--bootstrap", broker.bootstrap, "--topics", topic, "--to", str(tmp_path / "h")]
    command = [sys.executable, "-m", "tailrace", "pipeline", *words, "--every", "0.2", "--master", "local[1]"]
    driver = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True)
    for number in (0, 10):
        write(cluster, topic, numbered(10, number))
        deadline = time.monotonic() + 100
        while read_log(tmp_path / "h").ends() != {TopicPartition(topic, 0): number + 10}:
            assert driver.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=100)
    assert (driver.returncode, "archived 20 records in 2 files, 2 commits" in said) == (0, True), said


@pytest.mark.parametrize("place", REPLAY_TASK)
def test_a_replay(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, place: str
) -> None:
    wanted = in_topic(cluster, topic)
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    words = ["replay", str(tmp_path / "h"), "--bootstrap", broker.bootstrap, "--topic", topic, "--into", f"{topic}-out"]
    killed_at(place, ["tailrace", "pipeline", *words, "--master", "local[2]"], tmp_path)
    assert values_in_topic(cluster, f"{topic}-out") == wanted
