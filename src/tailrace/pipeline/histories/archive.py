"""`archive`: topics into a history, exactly once, as a whole micro-batch or not at all.

Where it goes on: a query that ran before goes on where its checkpoint says, which lies in the history's own folder.
Without one, each partition goes on where its history ends, and one that has none begins with its log.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.crash_points import here
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.committing import begin, commit_batch, is_in
from tailrace.pipeline.histories.delta_log import Snapshot, checkpoint_name, own_folder, read_log
from tailrace.pipeline.histories.locking import alone
from tailrace.pipeline.histories.manifest import ArchivedRange, range_from
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets, start_offsets
from tailrace.pipeline.option_names import access_of, no_options, reaching
from tailrace.pipeline.source.offset_json import to_json
from tailrace.pipeline.source.options import Subscription

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

records_per_file_max: Final = 2_000_000
quarantine_name: Final = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What one run has added."""

    batches: int
    records: int
    files: int
    bytes: int
    quarantined: int  # offsets whose records could not be read, and were set aside
    ends: Offsets  # how far each partition is archived now


def archive(
    spark: "SparkSession",
    bootstrap: str,
    to: str | Path,
    *,
    topics: Sequence[str] = (),
    pattern: str = "",
    available_now: bool = False,
    trigger_s: float = 10.0,
    quarantine: bool = False,
    options: Mapping[str, str] = no_options,
    on_batch: Callable[[Sequence[ArchivedRange]], None] = lambda _: None,
) -> Archived:
    """Archive topics, until stopped or, with `available_now`, up to what is there now. What was added.

    A batch that is damaged stops it; with `quarantine` its bytes are set aside, and its offsets noted as such."""
    from tailrace.pipeline.histories.archiving import ArchivingSource, to_option

    if bool(topics) == bool(pattern):
        raise PipelineFailed("say what to archive: topics, or a pattern that their names match")
    history = Path(to).absolute()
    kind, value = ("subscribePattern", pattern) if pattern else ("subscribe", ",".join(topics))
    subscription = Subscription(kind=kind, value=value)
    with access_of(bootstrap, options).cluster() as cluster:
        partitions = subscription.partitions(cluster)  # a topic that is not there shows before anything is written
        begin(history)
        with alone(history, "archive"):
            count = Count(history, on_batch)
            spark.dataSource.register(ArchivingSource)
            reader = spark.readStream.format(ArchivingSource.name()).options(
                **{
                    kind: value,
                    to_option: str(history),
                    "startingOffsets": json.dumps(to_json(_starts(history, cluster, partitions))),
                    "maxRecordsPerPartition": str(records_per_file_max),
                    **(_set_aside(history) if quarantine else {}),
                    **reaching(bootstrap, options),
                }
            )
            writer = reader.load().writeStream.foreachBatch(count.take)
            writer = writer.option("checkpointLocation", str(history / own_folder / checkpoint_name))
            trigger = {"availableNow": True} if available_now else {"processingTime": f"{trigger_s} seconds"}
            query = writer.trigger(**trigger).start()
            try:
                query.awaitTermination()
            finally:
                query.stop()
    return count.done()


class Count:
    """Commits the batches of a query, and keeps count."""

    def __init__(self, history: Path, on_batch: Callable[[Sequence[ArchivedRange]], None]) -> None:
        self._history, self._on_batch = history, on_batch
        self._known = Snapshot()  # what was read of the log so far
        self._batches = self._records = self._files = self._bytes = 0
        self._quarantined = 0

    def take(self, frame: "DataFrame", batch: int) -> None:
        application = self._application()
        if is_in(read_log(self._history, self._known), application, batch):
            return  # its tasks would write over files that the history lives by
        ranges = [range_from(json.loads(row.manifest)) for row in frame.collect()]
        here("archive: before the commit")
        if not ranges or not commit_batch(self._history, ranges, application, batch, self._known):
            return
        here("archive: committed")
        self._batches += 1
        self._records += sum(one.count for one in ranges)
        self._files += sum(len(one.files) for one in ranges)
        self._bytes += sum(file.size for one in ranges for file in one.files)
        gaps = [gap for one in ranges for gap in one.gaps]
        self._quarantined += sum(gap.count for gap in gaps if gap.reason == "quarantined")
        self._on_batch(ranges)

    def done(self) -> Archived:
        return Archived(
            batches=self._batches,
            records=self._records,
            files=self._files,
            bytes=self._bytes,
            quarantined=self._quarantined,
            ends=begin(self._history).ends(),
        )

    def _application(self) -> str:
        """The query's id, which Spark has put into the checkpoint: batches are counted anew in another one."""
        told = json.loads((self._history / own_folder / checkpoint_name / "metadata").read_text())
        return str(told["id"])


def _set_aside(history: Path) -> dict[str, str]:
    return {"corruptBatches": "quarantine", "quarantinePath": str(history / own_folder / quarantine_name)}


def _starts(history: Path, cluster: Cluster, partitions: Sequence[TopicPartition]) -> Offsets:
    ends = begin(history).ends()
    fresh = [one for one in partitions if one not in ends]
    return {one: ends[one] for one in partitions if one in ends} | start_offsets(cluster, fresh)
