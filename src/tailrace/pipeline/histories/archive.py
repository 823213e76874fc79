"""`archive`: topics into a history, exactly once, in commits that are there as a whole or not at all.

Each commit goes on where the history ends: the driver looks how far the logs have come, Spark's tasks write the files,
and the driver makes them part of the history. What a task wrote and nobody committed is written again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.crash_points import here
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.archiving import Archiving
from tailrace.pipeline.histories.committing import begin, commit_batch
from tailrace.pipeline.histories.delta_log import own_folder
from tailrace.pipeline.histories.locking import alone
from tailrace.pipeline.histories.manifest import ArchivedRange, range_from
from tailrace.pipeline.histories.outlook import outlook
from tailrace.pipeline.histories.under_way import forget, left_over, note, told
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.fetching import Range
from tailrace.pipeline.kafka.offsets import Offsets, commit_offsets
from tailrace.pipeline.option_names import no_options, reaching
from tailrace.pipeline.source.options import ReadOptions, read_options
from tailrace.pipeline.source.splitting import limited, ranges
from tailrace.pipeline.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

records_per_file_max: Final = 2_000_000
records_per_commit_max: Final = 50_000_000  # about as many as a crash costs
quarantine_name: Final = "quarantine"

OnBatch = Callable[[Sequence[ArchivedRange]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What one run has added."""

    batches: int = 0
    records: int = 0
    files: int = 0
    bytes: int = 0
    quarantined: int = 0  # offsets whose records could not be read, and were set aside
    ends: Offsets  # how far each partition is archived now

    def and_also(self, batch: Sequence[ArchivedRange], ends: Offsets) -> "Archived":
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
    options: Mapping[str, str] = no_options,
    on_batch: OnBatch = lambda _: None,
) -> Archived:
    """Archive topics, until interrupted or, with `available_now`, up to what is there now. What was added.

    A batch that is damaged stops it; with `quarantine` its bytes are set aside, and its offsets noted as such."""
    if bool(topics) == bool(pattern):
        raise PipelineFailed("say what to archive: topics, or a pattern that their names match")
    history = Path(to).absolute()
    what = {"subscribePattern": pattern} if pattern else {"subscribe": ",".join(topics)}
    asked = read_options({**what, **reaching(bootstrap, options)}, "batch")
    with asked.access.cluster() as cluster:
        asked.subscription.partitions(cluster)  # a topic that is not there shows before anything is written
        begin(history)
        with alone(history, "archive"):
            run = ArchiveRun(spark, cluster, history, asked, on_batch, quarantine=quarantine)
            try:
                run.go_on()
                while not available_now:
                    run.wait(trigger_s)
                    run.go_on()
            except KeyboardInterrupt:
                if available_now:
                    raise
    return run.added


class ArchiveRun:
    """One run of an archive: it keeps in mind how far the history is, and counts what it adds."""

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
        self._asked, self._on_batch = asked, on_batch
        self._common = Archiving(
            access=asked.access,
            history=str(history),
            committed=asked.committed,
            quarantine=str(history / own_folder / quarantine_name) if quarantine else "",
        )
        self._known = begin(history)
        self._went_on_at = 0.0
        self.added = Archived(ends=self._known.ends())

    def go_on(self) -> None:
        """Archive what the logs have by now."""
        self._went_on_at = time.monotonic()
        ahead = outlook(
            self._cluster,
            self._asked.subscription,
            self._known.ends(),
            committed=self._asked.committed,
            if_lost=self._common.if_lost,
        )
        start = ahead.start
        while start != ahead.end:
            planned = left_over(self._history, start, ahead.end) or self._planned(start, ahead.end)
            self._add(planned)
            start = start | {one.partition: one.end for one in planned}
            if self._asked.group:
                commit_offsets(self._cluster, self._asked.group, start)

    def wait(self, trigger_s: float) -> None:
        """Until so long after the last start."""
        time.sleep(max(0.0, self._went_on_at + trigger_s - time.monotonic()))

    def _planned(self, start: Offsets, end: Offsets) -> list[Range]:
        end = limited(start, end, self._asked.max_offsets or records_per_commit_max)
        return ranges(start, end, most_records=records_per_file_max)

    def _add(self, wanted: Sequence[Range]) -> None:
        note(self._history, wanted)
        function = "tailrace.pipeline.histories.archiving:archive_told"
        answers = run_tasks(self._spark, function, [told(one) for one in wanted], asdict(self._common))
        done = [range_from(one) for one in answers]
        here("archive: before the commit")
        commit_batch(self._history, done, self._known)
        here("archive: committed")
        forget(self._history)
        self.added = self.added.and_also(done, self._known.ends())
        self._on_batch(done)
