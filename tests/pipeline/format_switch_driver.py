"""A stateful query that is stopped and goes on under another format, again and again, from one checkpoint.

A process of its own, since Spark's kafka connector may need another Spark than the installed one:

    python -m tests.pipeline.format_switch_driver '{"bootstrap": …}'

Each stop is in the midst of things: records are left, and the commit of the last batch is taken back, as if the driver
had died before it; so the next format runs a batch that the one before has planned.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.pipeline import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

BATCHES_EACH = 2  # that a format commits before it is stopped
STOP_TIMEOUT_S = 120.0
POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    bootstrap: str
    topic: str
    checkpoint: str
    formats: list[str]
    per_batch: int
    settings: dict[str, str]


@dataclass(slots=True, kw_only=True)
class Counted:
    """What the query says of all records so far, by batch."""

    by_batch: dict[int, list[list[Any]]]

    def take(self, rows: "DataFrame", batch: int) -> None:
        self.by_batch[batch] = sorted([bytes(row.key).decode(), row.records, row.total] for row in rows.collect())


def start(spark: "SparkSession", work: Work, name: str, counted: Counted, *, to_the_end: bool) -> "StreamingQuery":
    from pyspark.sql import functions as f

    reader = spark.readStream.format(name).option("kafka.bootstrap.servers", work.bootstrap)
    reader = reader.option("subscribe", work.topic).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", work.per_batch).load()
    state = frame.groupBy("key").agg(f.count("*").alias("records"), f.sum("offset").alias("total"))
    writer = state.writeStream.outputMode("complete").foreachBatch(counted.take)
    writer = writer.option("checkpointLocation", work.checkpoint)
    return (writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime="0 seconds")).start()


def stop_midway(query: "StreamingQuery", checkpoint: Path, batches: int) -> None:
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while query.isActive and len(commits(checkpoint)) < batches:
        assert time.monotonic() < deadline, "it makes no progress"
        time.sleep(POLL_S)
    if failed := query.exception():
        raise failed
    query.stop()
    newest = commits(checkpoint)[-1]
    for name in (str(newest), f".{newest}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def commits(checkpoint: Path) -> list[int]:
    folder = checkpoint / "commits"
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal()) if folder.is_dir() else []


def main() -> None:
    work = Work(**json.loads(sys.argv[1]))
    spark = session("moving", master="local[2]", settings=work.settings, brief=True, keep_classes=False)
    checkpoint, counted, ends = Path(work.checkpoint), Counted(by_batch={}), []
    for number, name in enumerate(work.formats, 1):
        to_the_end = number == len(work.formats)
        query = start(spark, work, name, counted, to_the_end=to_the_end)
        if to_the_end:
            query.awaitTermination()
        else:
            stop_midway(query, checkpoint, len(commits(checkpoint)) + BATCHES_EACH)
        ends.append(commits(checkpoint)[-1])
    spark.stop()
    sys.stdout.write(json.dumps({"ends": ends, "counted": counted.by_batch[max(counted.by_batch)]}) + "\n")


if __name__ == "__main__":
    main()
