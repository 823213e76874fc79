"""The pipeline: start-up of Spark; reading a topic against a source with prepared rows; the jobs.

All columns, random keys and values, four partitions, `local[2]`. What was read, archived and replayed is verified by
count and checksum outside the timing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.cases import Start
from benchmarks.cases.spark_starts import spark_starts
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.spark_loads import Load
from benchmarks.spark_rates import drain, rates, verify
from benchmarks.spark_topics import fill, make_topic
from tailrace.pipeline.kafka.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOADS: Final = (
    Load(topic="of-100-bytes", record_bytes=100, per_batch=10_000, batches=50),
    Load(topic="of-1-kilobyte", record_bytes=1000, per_batch=1_000, batches=100),
)
OF_READY_MADE: Final = Threshold(of="ratio", at_least=0.45)


def spark(start: Start, folder: Path) -> Iterator[Outcome]:
    from benchmarks.ready_made import ReadySource
    from tailrace.pipeline import session

    with start(folder, "never") as broker, Cluster(f"{broker.host}:{broker.port}") as cluster:
        bootstrap = f"{broker.host}:{broker.port}"
        yield from spark_starts(bootstrap, cluster, folder)  # before the session below takes memory and cores
        spark = session("benchmarks", master="local[2]", settings={"spark.driver.memory": "2g"}, keep_classes=False)
        spark.dataSource.register(ReadySource)
        totals = [fill(cluster, load) for load in LOADS]
        for load, total in zip(LOADS, totals, strict=True):
            yield _reading(spark, bootstrap, load, total)
        for load, total in zip(LOADS, totals, strict=True):
            yield from _jobs(spark, bootstrap, cluster, folder, load, total)
        spark.stop()


def _reading(spark: "SparkSession", bootstrap: str, load: Load, total: int) -> Outcome:
    reader = spark.read.format("tailrace").option("kafka.bootstrap.servers", bootstrap)
    ours = reader.option("subscribe", load.topic).load()
    verify(ours, load.records, total)
    options: dict[str, Any] = {name: getattr(load, name) for name in ("record_bytes", "per_batch", "batches")}
    ready = spark.read.format("ready_made").options(**options).load()
    found = rates(load.records, {"ours": lambda _: drain(ours), "ready": lambda _: drain(ready)})
    return Outcome(
        name=f"Spark reads, {load.record_bytes:,} B",
        fsync="never",
        acks="",
        unit="rec/s",
        rounds=found["ours"],
        beside="one",
        beside_rounds=found["ready"],
        threshold=OF_READY_MADE,
    )


def _jobs(
    spark: "SparkSession", bootstrap: str, cluster: Cluster, folder: Path, load: Load, total: int
) -> Iterator[Outcome]:
    from tailrace.pipeline import archive, audit, history, replay

    histories, into = folder / load.topic, f"{load.topic}-replayed"
    make_topic(cluster, into)

    def archived(number: int) -> None:
        archive(spark, bootstrap, histories / str(number), topics=[load.topic], available_now=True)

    def replayed(number: int) -> None:
        replay(spark, histories / str(number), bootstrap, topic=load.topic, into=into, keep_partition=True)

    found = rates(load.records, {"archive": archived})
    for folder in sorted(histories.iterdir()):
        verify(history(spark, folder), load.records, total)
    found |= rates(load.records, {"audit": lambda number: audit(spark, histories / str(number))})
    assert all(audit(spark, folder).is_complete for folder in histories.iterdir()), "an archive is not complete"
    found |= rates(load.records, {"replay": replayed})
    reader = spark.read.format("tailrace").option("kafka.bootstrap.servers", bootstrap).option("subscribe", into)
    runs = len(list(histories.iterdir()))
    verify(reader.load(), runs * load.records, runs * total)
    for job, figures in found.items():
        name = f"Spark {job}, {load.record_bytes:,} B"
        yield Outcome(name=name, fsync="never", acks="", unit="rec/s", rounds=figures)
