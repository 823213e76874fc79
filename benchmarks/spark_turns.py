"""Spark's own Kafka source and ours in one session, in turns, over the same topics of one broker.

A separate process, because Spark's connector may need another Spark than the installed one; see `pipelines`.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.spark_contests import Kind
from benchmarks.spark_loads import Load
from benchmarks.spark_rates import drain, rates, verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PEER: Final = "kafka"
OURS: Final = "tailrace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    kind: Kind
    bootstrap: str
    load: dict[str, Any]  # the fields of a `Load`
    total: int  # the sum of all keys' and values' CRC-32
    folder: str  # for archives and Parquet files
    settings: dict[str, str]


def topic(spark: "SparkSession", work: Work, name: str, load: Load) -> "DataFrame":
    reader = spark.read.format(name).option("kafka.bootstrap.servers", work.bootstrap)
    return reader.option("subscribe", load.topic).load()


def read(spark: "SparkSession", work: Work, load: Load) -> dict[str, tuple[float, ...]]:
    frames = {name: topic(spark, work, name, load) for name in (PEER, OURS)}
    for frame in frames.values():
        verify(frame, load.records, work.total)
    return rates(load.records, {name: lambda _, frame=frame: drain(frame) for name, frame in frames.items()})  # type: ignore[misc]


def archive(spark: "SparkSession", work: Work, load: Load) -> dict[str, tuple[float, ...]]:
    """Our archive, which is exactly once and can be audited, against a plain Parquet write with Spark's source."""
    from tailrace.pipeline import archive, history

    folder = Path(work.folder)
    frame = topic(spark, work, PEER, load)

    def theirs(number: int) -> None:
        frame.write.option("compression", "zstd").parquet(str(folder / f"{PEER}-{number}"))

    def own(number: int) -> None:
        archive(spark, work.bootstrap, folder / f"{OURS}-{number}", topics=[load.topic], available_now=True)

    found = rates(load.records, {PEER: theirs, OURS: own})
    for path in sorted(folder.iterdir()):
        rows = history(spark, path) if path.name.startswith(OURS) else spark.read.parquet(str(path))
        verify(rows, load.records, work.total)
    return found


def main() -> None:
    from tailrace.pipeline import session

    work = Work(**json.loads(sys.argv[1]))
    settings = {"spark.driver.memory": "2g", **work.settings}
    spark = session("contest", master="local[2]", settings=settings, keep_classes=False)
    found = (read if work.kind == "read" else archive)(spark, work, Load(**work.load))
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
