"""The replay on the driver: resolve the options and the replay id, then replay by task or by SQL condition."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.pipeline.histories.delta_log import Snapshot
from tailrace.pipeline.histories.reading import files_frame, snapshot_of
from tailrace.pipeline.option_names import NO_OPTIONS, access_of, with_bootstrap
from tailrace.pipeline.replaying.parameters import (
    ReplayParameters,
    default_id,
    demand_compatible,
    ranges_of,
    with_bound,
)
from tailrace.pipeline.sink.progress import read_progress
from tailrace.pipeline.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def replay(
    spark: "SparkSession",
    history: str | Path,
    bootstrap: str,
    *,
    topic: str,
    into: str,
    where: str = "",
    start: str = "",
    end: str = "",
    key: str | None = None,
    keep_partition: bool = False,
    keep_timestamp: bool = False,
    per_second: float = 0.0,
    replay_id: str = "",
    options: Mapping[str, str] = NO_OPTIONS,
) -> int:
    """Write the records of a topic's history into a topic, exactly once. Return the number written by this run.

    `start` and `end` are offsets (`1200`) or times (`2026-11-16T08:00`); `end` is exclusive. The same replay, run
    again, resumes where it was interrupted, and writes nothing if it was done; give another `replay_id` to redo it."""
    demand_compatible(where, per_second)
    folder = Path(history).absolute()
    snapshot = snapshot_of(folder)
    by_partition = ranges_of(snapshot, topic)
    parameters = ReplayParameters(
        replay_id=replay_id,
        access=access_of(bootstrap, options),
        history=str(folder),
        into=into,
        key=key,
        keep_partition=keep_partition,
        keep_timestamp=keep_timestamp,
        per_second=per_second / len(by_partition),
    )
    parameters = with_bound(with_bound(parameters, start, is_start=True), end, is_start=False)
    parameters = replace(parameters, replay_id=replay_id or default_id(snapshot.history_id, topic, where, parameters))
    with parameters.access.cluster() as cluster:
        cluster.partitions([into])  # fail on a missing topic before anything is written
    if where:
        return _by_condition(spark, folder, snapshot, topic, where, parameters, options)
    inputs = [[one.to_dict() for one in ranges] for ranges in by_partition.values()]
    return sum(run_tasks(spark, "tailrace.pipeline.replaying.partition:replay_partition", inputs, asdict(parameters)))


def _by_condition(
    spark: "SparkSession",
    folder: Path,
    snapshot: Snapshot,
    topic: str,
    where: str,
    parameters: ReplayParameters,
    options: Mapping[str, str],
) -> int:
    from pyspark.sql import functions as f

    name = f"replay-{parameters.replay_id}"
    with parameters.access.cluster() as cluster:
        progress = read_progress(cluster, name)
    if progress is not None and progress.covers(name, 0) and progress.state == "done":
        return 0
    frame = files_frame(spark, folder, snapshot).where(f.col("topic") == topic).where(where)
    frame = frame.where(f.col("offset").between(parameters.first, parameters.end - 1))
    stamp = f.unix_millis("timestamp")
    frame = frame.where((stamp >= parameters.earliest_ms) & (stamp < parameters.latest_ms))
    if parameters.key is not None:
        frame = frame.where(f.col("key") == f.lit(parameters.key.encode()))
    frame = frame.repartition("partition").sortWithinPartitions("partition", "offset")
    columns = ["key", "value", "headers"]
    columns += ["partition"] * parameters.keep_partition + ["timestamp"] * parameters.keep_timestamp
    writer = frame.select(*columns).write.format("tailrace").mode("append").option("topic", parameters.into)
    writer = writer.options(**with_bootstrap(parameters.access.bootstrap, options)).option("exactlyOnce", "true")
    count: int = frame.count()
    writer.option("sinkId", name).option("jobId", name).save()
    return count
