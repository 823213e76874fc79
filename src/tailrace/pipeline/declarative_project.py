"""A project for Spark's declarative pipelines: `tailrace pipeline init` writes it, `spark-pipelines run` executes it.

The data flows from a topic to a streaming table, a materialized view, and another topic. Spark's engine works out the
order of execution, keeps the checkpoints, and reads and writes topics through `format("tailrace")`. The project does
not know the contents of the records, so it counts them by key: a starting point for the user to change.
"""

import re
from pathlib import Path
from string import Template
from typing import Final
from uuid import uuid4

from tailrace.pipeline.failure import PipelineFailed

_SPEC: Final = """\
name: $table
storage: $storage
configuration:
  spark.sql.shuffle.partitions: "4"
libraries:
  - glob:
      include: transformations/**
"""

_TABLE: Final = """\
\"\"\"The topic $topic as a streaming table: each run adds the records that have come since the last one.\"\"\"

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

bootstrap = os.environ.get("TAILRACE_BOOTSTRAP", "$bootstrap")
spark = SparkSession.active()


@dp.table(name="$table")
def records() -> DataFrame:
    topic = (
        spark.readStream.format("tailrace")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", "$topic")
        .option("startingOffsets", "earliest")
        .load()
    )
    return topic.selectExpr("cast(key as string) as key", "cast(value as string) as value", "timestamp")
"""

_VIEW: Final = """\
-- Made anew by each run, from all that is in the table.
CREATE MATERIALIZED VIEW $view AS
SELECT key, count(*) AS records, max(timestamp) AS latest
FROM $table
GROUP BY key
"""

_SINK: Final = """\
\"\"\"The view back into a topic, each run's rows exactly once: the latest record of a key is what counts.\"\"\"

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

bootstrap = os.environ.get("TAILRACE_BOOTSTRAP", "$bootstrap")
sink_id = "$sink"  # by this brokers know how far the project is: a copy that writes as well needs another
spark = SparkSession.active()

dp.create_sink(
    "into_topic",
    "tailrace",
    {"kafka.bootstrap.servers": bootstrap, "topic": "$into", "exactlyOnce": "true", "sinkId": sink_id},
)


@dp.append_flow(target="into_topic")
def send() -> DataFrame:
    return spark.readStream.table("$view").selectExpr("key", "to_json(struct(*)) as value")
"""

_IGNORED: Final = "storage/\nspark-warehouse/\nmetastore_db/\nderby.log\n__pycache__/\n"

_FILES: Final = (
    ("spark-pipeline.yml", _SPEC),
    ("transformations/records.py", _TABLE),
    ("transformations/by_key.sql", _VIEW),
    ("transformations/into_topic.py", _SINK),
    (".gitignore", _IGNORED),
)


def init(folder: str | Path, *, bootstrap: str = "127.0.0.1:9092", topic: str = "orders", into: str = "totals") -> Path:
    """Write a project into an empty or new folder; return the folder's path."""
    project = Path(folder).absolute()
    _refuse(project, bootstrap, topic, into)
    table = re.sub(r"\W", "_", topic if topic[0].isalpha() else f"topic_{topic}")
    sink = f"{topic}-into-{into}-{uuid4().hex[:8]}"  # unique, even among projects on the same topics
    names = {"bootstrap": bootstrap, "topic": topic, "into": into, "table": table, "view": f"{table}_by_key"}
    for path, text in _FILES:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(Template(text).substitute(names, sink=sink, storage=(project / "storage").as_uri()))
    return project


def _refuse(project: Path, bootstrap: str, topic: str, into: str) -> None:
    if project.exists() and (not project.is_dir() or any(project.iterdir())):
        raise PipelineFailed(f"{project} is there already; give a folder that is not, or an empty one")
    if topic == into:
        raise PipelineFailed(f"{topic} would be read and written in an endless loop; give another topic to write to")
    for name in (topic, into):
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            raise PipelineFailed(f"{name!r} is not a topic name: letters, digits, dots, hyphens, underscores")
    if not re.fullmatch(r"[\w.:,\[\]-]+", bootstrap):
        raise PipelineFailed(f"{bootstrap!r} is not a list of broker addresses: HOST:PORT, with commas between them")
