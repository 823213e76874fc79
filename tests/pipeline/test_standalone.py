"""spark-submit to a standalone cluster of a real master and real workers, as its page says; and what Spark does on
one alone: it runs a slow task a second time, on another host."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.programs import environment, python_of, root, run, started
from tests.pipeline.speculation_driver import ROWS_OF_EACH, TASKS
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

pytestmark = pytest.mark.long

WHERE_FROM = """
def home(_):
    import tailrace
    return [tailrace.__file__]

print(spark.sparkContext.parallelize([0], 1).flatMap(home).first())
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster with one worker, which has Tailrace from nowhere but the job."""
    variables = environment(PYTHONPATH="")
    words = ["spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
    address = r"Starting Spark master at (spark://\S+)"
    with (
        started([*words, "--webui-port", "0"], variables, tmp_path / "master.log", address) as master,
        worker(master, tmp_path / "first", "127.0.0.1", variables),
    ):
        yield master


def worker(master: str, folder: Path, host: str, variables: dict[str, str]) -> AbstractContextManager[str]:
    folder.mkdir()
    words = ["spark-class", "org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0"]
    words += ["--cores", "2", "--work-dir", str(folder), master]
    return started(words, variables, folder / "worker.log", r"(Successfully registered) with master")


def test_the_job_of_the_page(broker: Broker, cluster: Cluster, topic: str, master: str, tmp_path: Path) -> None:
    make_topic(cluster, topic, 2)
    make_topic(cluster, f"{topic}-copies")
    for partition in range(2):
        write(cluster, topic, numbered(10), partition=partition)
    shutil.make_archive(str(tmp_path / "tailrace"), "zip", root / "src")
    job = tmp_path / "job.py"
    job.write_text(python_of("standalone.md", topic).replace("spark.stop()", f"{WHERE_FROM}spark.stop()"))
    words = ["spark-submit", "--master", master, "--conf", "spark.driver.host=127.0.0.1", "--py-files", "tailrace.zip"]
    printed = run([*words, "job.py", broker.bootstrap, "./checkpoint"], environment(PYTHONPATH=""), tmp_path)
    assert "tailrace.zip/tailrace/__init__.py" in printed
    assert values_in_topic(cluster, f"{topic}-copies") == sorted([one.value or b"" for one in numbered(10)] * 2)


def test_an_archive_of_ours(broker: Broker, cluster: Cluster, topic: str, master: str, tmp_path: Path) -> None:
    make_topic(cluster, topic, 2)
    for partition in range(2):
        write(cluster, topic, numbered(10), partition=partition)
    words = ["--bootstrap", broker.bootstrap, "--topics", topic, "--to", "history", "--master", master]
    command = [sys.executable, "-m", "tailrace", "pipeline", "archive", *words, "--available-now", "--json"]
    assert json.loads(run(command, environment(), tmp_path))["records"] == 20


def test_two_attempts_of_one_task(broker: Broker, cluster: Cluster, topic: str, master: str, tmp_path: Path) -> None:
    """`spark.speculation=true`: both attempts write, and each row is there once."""
    make_topic(cluster, topic)
    elsewhere = "127.0.0.2"  # Spark runs no second attempt on the host of the first
    variables = environment(PYTHONPATH=f"{root}{os.pathsep}{root / 'src'}")
    words = [sys.executable, "-m", "tests.pipeline.speculation_driver", master, broker.bootstrap, topic, str(tmp_path)]
    with worker(master, tmp_path / "second", elsewhere, variables | {"SPARK_LOCAL_IP": elsewhere}):
        run(words, variables, root)
    assert (tmp_path / "attempt-1").exists()
    assert values_in_topic(cluster, topic) == sorted(str(number).encode() for number in range(TASKS * ROWS_OF_EACH))
