"""Spark Connect: a server that has Tailrace, and a program that has nothing but Spark's client, as its page says."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.programs import SPARK_EXTRAS, environment, fetched, python_of, run, started
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic

pytestmark = pytest.mark.long


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Connect server."""
    here = {"grpc.binding.address": "127.0.0.1", "grpc.binding.port": "0"}
    confs = [word for name, value in here.items() for word in ("--conf", f"spark.connect.{name}={value}")]
    words = [
        "spark-submit",
        "--master",
        "local[2]",
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
    ]
    says = r"Spark Connect server started at: (\S+)"
    with started([*words, *confs, "spark-internal"], environment(), tmp_path / "server.log", says) as address:
        yield address


def test_the_program_of_the_page(broker: Broker, cluster: Cluster, topic: str, server: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    make_topic(cluster, f"{topic}-copies")
    program = python_of("connect.md", topic).replace("127.0.0.1:9092", broker.bootstrap)
    program = program.replace("127.0.0.1:15002", server).replace("./checkpoint", str(tmp_path / "checkpoint"))
    ours = '\nimport sys\nassert "tailrace" not in sys.modules\n'
    (tmp_path / "program.py").write_text(program + ours)
    client = environment(PYTHONPATH=str(fetched(*SPARK_EXTRAS)), PATH="", JAVA_HOME="")
    printed = run([sys.executable, "program.py"], client, tmp_path)
    assert "two coffees" in printed
    assert values_in_topic(cluster, f"{topic}-copies") == [b"two coffees"]
