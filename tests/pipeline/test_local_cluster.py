"""Executors that are processes of their own: one is killed in the middle of its work, and each record is there once.

In `make test` it runs on the Java from PyPI, as on a machine that has none.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.crash_places import crash_variables
from tests.pipeline.programs import root, without_java
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

EXECUTORS = "local-cluster[2,1,1024]"


@pytest.mark.parametrize("java", ["from PyPI", pytest.param("of the machine", marks=pytest.mark.long)])
def test_an_executor_that_is_killed(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, java: str) -> None:
    """It dies with the rows of its task written, in a transaction that nobody has decided about."""
    make_topic(cluster, topic, 2)
    make_topic(cluster, f"{topic}-out")
    for partition in range(2):
        write(cluster, topic, numbered(10), partition=partition)
    place = tmp_path / "place"
    place.write_text("sink: rows written\njava")
    words = [EXECUTORS, broker.bootstrap, topic, f"{topic}-out", str(tmp_path / "checkpoint")]
    given = without_java(tmp_path) if java == "from PyPI" else os.environ
    driver = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.copy_driver", *words],
        cwd=root, env={**given, **crash_variables(place)}, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert driver.returncode == 0, driver.stderr[:4000]
    assert not place.exists()
    assert "Lost executor" in driver.stderr
    assert values_in_topic(cluster, f"{topic}-out") == sorted([one.value or b"" for one in numbered(10)] * 2)
