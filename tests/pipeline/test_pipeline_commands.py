"""`tailrace pipeline …` as scripts use it: what it prints, and its exit codes."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.cli.main import main
from tailrace.cli.pipeline.spark import tasks_done
from tailrace.pipeline.histories.delta_log import read_log
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.programs import root
from tests.pipeline.report_pages import read, traces
from tests.pipeline.test_upkeep import grown
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_archive_and_audit(
    spark: "SparkSession",
    broker: Broker,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    folder = str(tmp_path / "history")
    (tmp_path / "client.properties").write_text("bootstrap.servers=127.0.0.1:1\n")  # the command line wins
    words = ["pipeline", "archive", "--bootstrap", broker.bootstrap, "--topics", topic, "--to", folder]
    words += ["--client-config", str(tmp_path / "client.properties")]
    assert main([*words, "--available-now", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 10
    assert main(["pipeline", "audit", folder, "--bootstrap", broker.bootstrap]) == 0
    assert "complete: 10 records in 1 files, 1 ranges as the live log has them" in capsys.readouterr().out
    path = next(iter(read_log(tmp_path / "history").live))
    (tmp_path / "history" / path).unlink()
    assert main(["pipeline", "audit", folder, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "wrong"
    assert [(one["kind"], one["file"], one["first"], one["last"]) for one in told["findings"]] == [
        ("missing file", path, 0, 9)
    ]


def test_the_commands_of_the_readme(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    section = (root / "README.md").read_text().split("## On Spark\n")[1].split("\n\n")[0]
    install, *commands = [line.split() for line in section.splitlines()]
    assert (install[:2], [words[:2] for words in commands]) == (["pip", "install"], [["tailrace", "pipeline"]] * 3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAILRACE_BOOTSTRAP", broker.bootstrap)
    for words in commands:
        assert main([topic if word == "payments" else word for word in words[1:]]) == 0
    assert topic in traces(read((tmp_path / "report.html").read_text()), "over-time")


def test_how_far_spark_is_can_be_seen(spark: "SparkSession") -> None:
    with ThreadPoolExecutor(1) as beside:
        counting = beside.submit(lambda: spark.range(0, 2**23, 1, 8).selectExpr("sum(hash(id))").collect())
        seen: list[tuple[int, int]] = []
        while not counting.done():
            seen.append(tasks_done(spark))
    assert (8 in {total for _, total in seen}, tasks_done(spark)) == (True, (0, 0))


def test_what_cannot_be_told(spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "audit", str(tmp_path)]) == 2
    assert "there is no history in" in capsys.readouterr().err


def test_a_broker_that_does_not_answer(
    cluster: Cluster, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grown(cluster, topic, tmp_path / "h", 1)
    assert main(["pipeline", "audit", str(tmp_path / "h"), "--bootstrap", "127.0.0.1:1"]) == 2
    assert "cannot tell: no broker at 127.0.0.1:1" in capsys.readouterr().err


def test_a_topic_that_is_not_there(
    spark: "SparkSession", broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline", "archive", "--bootstrap", broker.bootstrap, "--to", str(tmp_path / "h")]
    assert main([*words, "--topics", "never-made", "--available-now"]) == 1
    assert "there is no topic never-made" in capsys.readouterr().err
    assert main(words) == 2
