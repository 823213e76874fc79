"""`archive`: write topics into a history, exactly once, in atomic commits.

Each commit continues where the history ends: the driver looks up the end offsets of the logs, Spark's tasks write the
files, and the driver commits them. Files that a task wrote but that were never committed are written again.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.histories.archive_options import archive_options
from tailrace.pipeline.histories.archive_task import ArchiveTask
from tailrace.pipeline.histories.committing import commit_batch, open_or_create
from tailrace.pipeline.histories.delta_log import OWN_FOLDER, read_log
from tailrace.pipeline.histories.locking import exclusive_lock
from tailrace.pipeline.histories.manifest import ArchivedRange, archived_range_from
from tailrace.pipeline.histories.pending_offsets import pending_offsets
from tailrace.pipeline.histories.planned_ranges import planned_earlier, range_to_json, remove_planned, save_planned
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.kafka.offsets import Offsets, commit_offsets
from tailrace.pipeline.option_names import NO_OPTIONS
from tailrace.pipeline.source.options import ReadOptions
from tailrace.pipeline.source.range_planning import limit_ends, plan_ranges, take_first
from tailrace.pipeline.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS_PER_FILE_MAX: Final = 2_000_000
OFFSETS_PER_COMMIT_MAX: Final = 50_000_000  # the most work a crash can lose
QUARANTINE_NAME: Final = "quarantine"
PAUSE_MIN_S: Final = 0.05

OnBatch = Callable[[Sequence[ArchivedRange]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What one archive run has added."""

    batches: int = 0
    records: int = 0
    files: int = 0
    bytes: int = 0
    quarantined: int = 0  # offsets whose records could not be read and were quarantined
    ends: Offsets  # by partition, the offset up to which it is archived now

    def with_batch(self, batch: Sequence[ArchivedRange], ends: Offsets) -> "Archived":
        files = [file for one in batch for file in one.files]
        gaps = [gap for one in batch for gap in one.gaps]
        return Archived(
            batches=self.batches + 1,
            records=self.records + sum(one.count for one in batch),
            files=self.files + len(files),
            bytes=self.bytes + sum(file.size for file in files),
            quarantined=self.quarantined + sum(gap.count for gap in gaps if gap.reason == "quarantined"),
            ends=ends,
        )


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
    options: Mapping[str, str] = NO_OPTIONS,
    on_batch: OnBatch = lambda _: None,
    stop: threading.Event | None = None,
) -> Archived:
    """Archive topics until interrupted or stopped or, with `available_now`, up to the current end. Return the result.

    A damaged record batch makes the run fail, unless `quarantine` is set: then the batch's bytes are saved in the
    quarantine folder, and the manifest lists its offsets as quarantined."""
    history = Path(to).absolute()
    asked = archive_options(bootstrap, topics=topics, pattern=pattern, options=options)
    stop = stop or threading.Event()
    with asked.access.cluster() as cluster:
        asked.subscription.partitions(cluster)  # fail on a missing topic before anything is written
        open_or_create(history)
        with exclusive_lock(history, "archive"):
            run = ArchiveRun(spark, cluster, history, asked, on_batch, quarantine=quarantine)
            try:
                run.archive_available()
                while not available_now and not stop.wait(run.seconds_to_next(trigger_s)):
                    run.archive_available()
            except KeyboardInterrupt:
                if available_now:
                    raise
                run.count_if_committed()
    return run.added


class ArchiveRun:
    """One archive run: keeps the current snapshot of the history, and counts what the run adds."""

    def __init__(
        self,
        spark: "SparkSession",
        cluster: Cluster,
        history: Path,
        asked: ReadOptions,
        on_batch: OnBatch,
        *,
        quarantine: bool,
    ) -> None:
        self._spark, self._cluster, self._history = spark, cluster, history
        self._options, self._on_batch = asked, on_batch
        self._task = ArchiveTask(
            access=asked.access,
            history=str(history),
            quarantine=str(history / OWN_FOLDER / QUARANTINE_NAME) if quarantine else "",
        )
        self._snapshot = open_or_create(history)
        self._started_at = 0.0
        self._written: list[ArchivedRange] = []  # written by tasks, and not counted in `added` yet
        self.added = Archived(ends=self._snapshot.ends())

    def archive_available(self) -> None:
        """Archive up to the current end of the logs."""
        self._started_at = time.monotonic()
        ahead = pending_offsets(self._cluster, self._options, self._snapshot.ends())
        start, fresh = ahead.start, [one for one in ahead.start if one not in self._snapshot.ends()]
        while fresh or start != ahead.end:
            planned = self._planned(start, ahead.end)
            ends = start | {one.partition: one.end for one in planned}
            self._add(planned, [_empty_range(one, start[one]) for one in fresh if ends[one] == start[one]])
            start, fresh = ends, []
            if self._options.group:
                commit_offsets(self._cluster, self._options.group, start)

    def seconds_to_next(self, trigger_s: float) -> float:
        """Seconds to wait until the next `archive_available`, which starts `trigger_s` after the last one started."""
        return max(PAUSE_MIN_S, self._started_at + trigger_s - time.monotonic())

    def count_if_committed(self) -> None:
        """After an interrupt, perhaps in the middle of a commit: count the last batch if it is in the log."""
        ends = read_log(self._history).ends()
        if self._written and all(ends.get(one.of, -1) >= one.end for one in self._written):
            self._count(ends)

    def _planned(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """The next ranges to archive, limited to what fits in one commit."""
        asked = self._options
        most = asked.max_offsets or OFFSETS_PER_COMMIT_MAX
        if planned := take_first(planned_earlier(self._history, start, end), most):
            return planned
        end = end if asked.max_offsets is None else limit_ends(start, end, asked.max_offsets)
        max_records = asked.max_records or RECORDS_PER_FILE_MAX
        planned = plan_ranges(start, end, min_ranges=asked.min_partitions, max_records=max_records)
        return planned if asked.max_offsets else take_first(planned, max(most, max_records))

    def _add(self, planned: Sequence[OffsetRange], seen: Sequence[ArchivedRange]) -> None:
        save_planned(self._history, planned)
        function = "tailrace.pipeline.histories.archive_task:run_archive_task"
        answers = run_tasks(self._spark, function, [range_to_json(one) for one in planned], asdict(self._task))
        self._written = [archived_range_from(one) for one in answers] + list(seen)
        commit_batch(self._history, self._written, self._snapshot)
        remove_planned(self._history, planned)
        self._count(self._snapshot.ends())

    def _count(self, ends: Offsets) -> None:
        done, self._written = self._written, []
        self.added = self.added.with_batch(done, ends)
        self._on_batch(done)


def _empty_range(one: TopicPartition, start: int) -> ArchivedRange:
    """An empty range that records where a partition starts, so that records deleted before archiving are noticed."""
    return ArchivedRange(topic=one.topic, partition=one.partition, start=start, end=start, count=0, gaps=(), files=())
