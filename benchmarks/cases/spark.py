"""The pipeline: a topic into Spark beside a source that has its rows ready; archive, audit and replay.

All columns, random keys and values, four partitions, `local[2]`. Two runs to warm up, then the median of three. What
was read is counted and summed outside the timing.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.cases import Start
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.spark_topics import Load, fill, partitions
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

warm_ups: Final = 2
rounds: Final = 3
loads: Final = (
    Load(topic="of-100-bytes", record_bytes=100, per_batch=10_000, batches=50),
    Load(topic="of-1-kilobyte", record_bytes=1000, per_batch=1_000, batches=100),
)
of_ready_made: Final = Threshold(of="ratio", at_least=0.45)


def spark(start: Start, folder: Path) -> Iterator[Outcome]:
    from benchmarks.ready_made import ReadySource
    from tailrace.pipeline import session

    spark = session("benchmarks", master="local[2]", settings={"spark.driver.memory": "2g"}, keep_classes=False)
    spark.dataSource.register(ReadySource)
    with start(folder, "never") as broker, Cluster(f"{broker.host}:{broker.port}") as cluster:
        bootstrap = f"{broker.host}:{broker.port}"
        for load in loads:
            total = fill(cluster, load)
            yield _reading(spark, bootstrap, load, total)
        yield from _jobs(spark, bootstrap, cluster, folder)
    spark.stop()


def _reading(spark: "SparkSession", bootstrap: str, load: Load, total: int) -> Outcome:
    reader = spark.read.format("tailrace").option("kafka.bootstrap.servers", bootstrap)
    ours = reader.option("subscribe", load.topic).load()
    row = ours.selectExpr("count(*) as records", "sum(crc32(value)) as total").first()
    assert row is not None
    assert (row.records, row.total) == (load.records, total), "what was read is not what was written"
    options: dict[str, Any] = {name: getattr(load, name) for name in ("record_bytes", "per_batch", "batches")}
    ready = spark.read.format("ready_made").options(**options).load()
    found = [(_rate(load, lambda: _drain(ours)), _rate(load, lambda: _drain(ready))) for _ in range(warm_ups + rounds)]
    return Outcome(
        name=f"Spark reads, {load.record_bytes:,} B",
        fsync="never",
        acks="",
        unit="rec/s",
        rounds=tuple(own for own, _ in found[warm_ups:]),
        beside="one",
        beside_rounds=tuple(other for _, other in found[warm_ups:]),
        threshold=of_ready_made,
    )


def _jobs(spark: "SparkSession", bootstrap: str, cluster: Cluster, folder: Path) -> Iterator[Outcome]:
    from tailrace.pipeline import archive, audit, replay

    load, histories = loads[0], folder / "histories"
    wanted = NewTopic(name="replayed", num_partitions=partitions, replication_factor=1)
    cluster.ask_any(CreateTopicsRequest(topics=(wanted,)))

    def archived(number: int) -> None:
        done = archive(spark, bootstrap, histories / str(number), topics=[load.topic], available_now=True)
        assert done.records == load.records

    def audited(number: int) -> None:
        assert audit(spark, histories / str(number)).is_complete

    def replayed(number: int) -> None:
        count = replay(
            spark, histories / str(number), bootstrap, topic=load.topic, into="replayed", keep_partition=True
        )
        assert count == load.records

    for name, job in (("archive", archived), ("audit", audited), ("replay", replayed)):
        rates = [_rate(load, lambda job=job, number=number: job(number)) for number in range(1 + rounds)]  # type: ignore[misc]
        yield Outcome(name=f"Spark {name}, 100 B", fsync="never", acks="", unit="rec/s", rounds=tuple(rates[1:]))


def _drain(frame: "DataFrame") -> None:
    frame.write.format("noop").mode("overwrite").save()


def _rate(load: Load, run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return load.records / (time.perf_counter() - began)
