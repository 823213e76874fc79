"""spark-submit to a standalone cluster of a real master and a real worker, as its page says."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.programs import environment, python_of, root, run, started
from tests.pipeline.test_sink import seen
from tests.pipeline.topics import make_topic, numbered, write

pytestmark = pytest.mark.long

where_from = """
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
    with started([*words, "--webui-port", "0"], variables, tmp_path / "master.log", address) as master:
        words = ["spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
        words += ["--cores", "2", "--work-dir", str(tmp_path / "work"), master]
        with started(words, variables, tmp_path / "worker.log", r"(Successfully registered) with master"):
            yield master


def test_the_job_of_the_page(broker: Broker, cluster: Cluster, topic: str, master: str, tmp_path: Path) -> None:
    make_topic(cluster, topic, 2)
    make_topic(cluster, f"{topic}-copies")
    for partition in range(2):
        write(cluster, topic, numbered(10), partition=partition)
    shutil.make_archive(str(tmp_path / "tailrace"), "zip", root / "src")
    job = tmp_path / "job.py"
    job.write_text(python_of("standalone.md", topic).replace("spark.stop()", f"{where_from}spark.stop()"))
    words = ["spark-submit", "--master", master, "--conf", "spark.driver.host=127.0.0.1", "--py-files", "tailrace.zip"]
    printed = run([*words, "job.py", broker.bootstrap, "./checkpoint"], environment(PYTHONPATH=""), tmp_path)
    assert "tailrace.zip/tailrace/__init__.py" in printed
    assert seen(cluster, f"{topic}-copies") == sorted([one.value or b"" for one in numbered(10)] * 2)


def test_an_archive_of_ours(broker: Broker, cluster: Cluster, topic: str, master: str, tmp_path: Path) -> None:
    make_topic(cluster, topic, 2)
    for partition in range(2):
        write(cluster, topic, numbered(10), partition=partition)
    words = ["--bootstrap", broker.bootstrap, "--topics", topic, "--to", "history", "--master", master]
    command = [sys.executable, "-m", "tailrace", "pipeline", "archive", *words, "--available-now", "--json"]
    assert json.loads(run(command, environment(), tmp_path))["records"] == 20
