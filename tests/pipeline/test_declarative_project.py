"""`tailrace pipeline init`: a project of Spark's declarative pipelines, from topic to topic, and Spark runs it."""

import ast
import json
import os
import re
from pathlib import Path

import pytest
import yaml

from tailrace.cli.main import main
from tailrace.pipeline import init
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.programs import SPARK_EXTRAS, environment, fetched, run
from tests.pipeline.test_sink import records
from tests.pipeline.topics import make_topic, numbered, write


def test_the_files_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "shop"
    assert main(["pipeline", "init", str(project), "--topic", "the-orders", "--into", "totals", "-b", "h:1"]) == 0
    assert "spark-pipelines run" in capsys.readouterr().err
    spec = yaml.safe_load((project / "spark-pipeline.yml").read_text())
    assert spec["storage"] == f"file://{project}/storage"
    for program in project.glob("transformations/*.py"):
        ast.parse(program.read_text())
        assert '"h:1"' in program.read_text()
    assert "FROM the_orders\n" in (project / "transformations" / "by_key.sql").read_text()
    assert '.option("subscribe", "the-orders")' in (project / "transformations" / "records.py").read_text()


def test_two_projects_on_one_topic_do_not_share_their_progress(tmp_path: Path) -> None:
    first, second = (init(tmp_path / name, topic="orders", into="totals") for name in ("one", "two"))
    name = re.compile(r'^sink_id = "(orders-into-totals-[0-9a-f]{8})"', re.MULTILINE)
    found = [name.findall((one / "transformations" / "into_topic.py").read_text()) for one in (first, second)]
    assert [len(names) for names in found] == [1, 1]
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topic": "a", "into": "a"}, "in an endless loop"),
        ({"topic": 'a"b'}, "is not a topic name"),
        ({"bootstrap": 'h:1"'}, "is not a list of broker addresses"),
    ],
)
def test_what_it_refuses(tmp_path: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineFailed, match=said):
        init(tmp_path / "shop", **options)
    assert not (tmp_path / "shop").exists()


def test_it_writes_over_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("mine")
    assert main(["pipeline", "init", str(tmp_path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.long
def test_spark_runs_it_and_runs_it_again(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    make_topic(cluster, f"{topic}-out")
    project = init(tmp_path / "shop", bootstrap=broker.bootstrap, topic=topic, into=f"{topic}-out")
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(fetched(*SPARK_EXTRAS))])
    command = ["spark-pipelines", "run", "--conf", "spark.sql.catalogImplementation=hive"]
    for runs in (1, 2):
        write(cluster, topic, numbered(7))  # one of each key
        run(command, environment(PYTHONPATH=path), project)
        told = [json.loads(record.value or b"") for record in records(cluster, f"{topic}-out")]
        newest = {one["key"]: one["records"] for one in told}
        assert newest == {f"key {number}": runs for number in range(7)}
        assert len(told) == 7 * runs
