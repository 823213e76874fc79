"""What a command leaves on standard error: its own lines, and nothing of Spark's unless it is asked for or fails."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.cli.main import main
from tailrace.pipeline.jvm.spark_log import CONFIGURATION, log_options
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.test_upkeep import grown
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 180.0


def stderr_of(words: list[str], broker: Broker, folder: Path, code: int = 0) -> str:
    """That of a command which has a JVM of its own, and ends with this code."""
    variables = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    done = subprocess.run(
        [sys.executable, "-m", "tailrace", "pipeline", *words, "--master", "local[1]"],
        cwd=folder, env={**variables, "TAILRACE_BOOTSTRAP": broker.bootstrap}, capture_output=True, text=True,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr


def test_a_command_that_ends_well_shows_nothing_of_spark(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    words = ["archive", "--topics", topic, "--to", "h", "--available-now"]
    assert stderr_of(words, broker, tmp_path) == "archived 10 records in 1 files, 1 commits, to h\n"


def test_verbose_shows_spark_s_log(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    grown(cluster, topic, tmp_path / "h", 1)
    said = stderr_of(["compact", "h", "--verbose"], broker, tmp_path)
    assert "Spark INFO SparkContext: Running Spark version" in said
    assert "nothing to compact" in said


def test_errors_of_spark_are_shown_and_cut(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    grown(cluster, topic, tmp_path / "h", 1)
    words = ["replay", "h", "--topic", topic, "--into", topic, "--where", "assert_true(offset < 4) is null"]
    said = stderr_of(words, broker, tmp_path, 1)
    assert "Spark ERROR Executor: Exception in task" in said
    assert "tailrace: [USER_RAISED_EXCEPTION] '(offset < 4)' is not true!" in said
    assert said.endswith("With --verbose, Spark's own log says more.\n")
    assert "\tat org.apache.spark" not in said


@pytest.mark.spark
def test_a_query_that_makes_no_sense_gets_one_sentence(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    grown(cluster, topic, tmp_path / "h", 1)
    words = ["pipeline", "replay", str(tmp_path / "h"), "--topic", topic, "--into", topic, "-b", broker.bootstrap]
    assert main([*words, "--where", "no_such_column > 4"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("tailrace: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column")
    assert said.endswith("With --verbose, Spark's own log says more.\n")
    assert said.count("\n") == 2


def test_what_the_jvm_is_told() -> None:
    quiet = [f"-Dlog4j2.configurationFile={CONFIGURATION.as_uri()}"]
    assert log_options({}, {}) == quiet
    assert log_options({"spark.log.level": "WARN"}, {})[:2] == [*quiet, "-Dtailrace.spark.log.level=WARN"]


@pytest.mark.parametrize(
    "environment",
    [{"LOG4J_CONFIGURATION_FILE": "mine.xml"}, {"JAVA_TOOL_OPTIONS": "-Xss4m -Dlog4j2.configurationFile=mine.xml"}],
)
def test_a_configuration_of_the_environment_is_left_in_charge(environment: dict[str, str]) -> None:
    assert log_options({}, environment) == []
