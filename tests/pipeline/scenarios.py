"""What each protection is there for: something fails, the work is done again, and the records are counted.

No Spark is needed: these functions play its part, which is to run a task or a batch again. A process that dies is
played by a block that is left where it dies (`dying_at`).
"""

import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from tailrace.client.visible_batches import select_visible
from tailrace.model.faults import CorruptBatch
from tailrace.pipeline.access import Access
from tailrace.pipeline.arrow.columns import decode
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.committing import commit_batch, open_or_create
from tailrace.pipeline.histories.delta_log import CommitTaken, add_actions, commit, read_log
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.pending_offsets import pending_offsets
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.replaying.parameters import ReplayParameters
from tailrace.pipeline.replaying.partition import replay_partition
from tailrace.pipeline.sink.committing import commit_all
from tailrace.pipeline.sink.options import WriteOptions, write_options
from tailrace.pipeline.sink.write_task import Attempt, TaskCommitMessage, write_rows
from tailrace.pipeline.source.options import read_options
from tailrace.pipeline.source.stream import StreamReader
from tailrace.pipeline.upkeep.compact import _commit as commit_merged
from tailrace.pipeline.upkeep.merging import merged
from tailrace.pipeline.upkeep.vacuum import vacuum
from tailrace.records.build import build_batch
from tests.pipeline.crash_places import dying_at
from tests.pipeline.damage import change_value
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write


@dataclass(slots=True, kw_only=True)
class Stage:
    bootstrap: str
    cluster: Cluster
    topic: str
    folder: Path

    @property
    def of(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    def sink(self) -> WriteOptions:
        given = {"topic": self.topic, "exactlyOnce": "true", "sinkId": self.topic}
        return write_options({"kafka.bootstrap.servers": self.bootstrap, **given})

    def task(self, number: int, attempt: int = 0) -> TaskCommitMessage:
        """A task that writes its one row."""
        rows = pa.record_batch({"value": pa.array([b"row %d" % number])})
        return write_rows(self.sink(), iter([rows]), Attempt(number, attempt, "query", 0))

    def archived(self, start: int, end: int) -> ArchivedRange:
        return archive_range(self.cluster, OffsetRange(partition=self.of, start=start, end=end), self.folder)


def came_of(wanted: Sequence[object], got: Sequence[object]) -> str:
    """In a word: `once`, `twice` or `lost`."""
    counts = Counter(got)
    if any(counts[one] == 0 for one in wanted):
        return "lost"
    return "once" if len(got) == len(wanted) else "twice"


def rows_seen(stage: Stage, tasks: int) -> str:
    return came_of([b"row %d" % number for number in range(tasks)], values_in_topic(stage.cluster, stage.topic))


def a_task_is_run_again(stage: Stage) -> str:
    make_topic(stage.cluster, stage.topic)
    with dying_at("sink: rows written"):
        stage.task(0)
    commit_all(stage.sink(), [stage.task(0)])
    return rows_seen(stage, 1)


def a_driver_dies_between_two_commits(stage: Stage) -> str:
    make_topic(stage.cluster, stage.topic)
    with dying_at("sink: between two commits"):
        commit_all(stage.sink(), [stage.task(0), stage.task(1)])
    try:
        commit_all(stage.sink(), [stage.task(0), stage.task(1)])
    except PipelineFailed:
        return "refused"
    return rows_seen(stage, 2)


def a_straggler_begins_anew(stage: Stage) -> str:
    """The same attempt once more, from a worker that the driver has given up; it has written nothing yet."""
    make_topic(stage.cluster, stage.topic)
    first = [stage.task(0), stage.task(1)]
    with dying_at("sink: transaction begun"):
        stage.task(0)
    try:
        commit_all(stage.sink(), first)
    except PipelineFailed:
        with contextlib.suppress(PipelineFailed):  # what was decided without being there cannot be completed
            commit_all(stage.sink(), [stage.task(0), stage.task(1)])
    return rows_seen(stage, 2)


def two_attempts_run_beside_each_other(stage: Stage) -> str:
    """Speculation: the later attempt wins, and the earlier one holds its rows open."""
    make_topic(stage.cluster, stage.topic)
    stage.task(0, attempt=0)
    commit_all(stage.sink(), [stage.task(0, attempt=1)])
    return rows_seen(stage, 1)


def the_first_of_two_attempts_wins(stage: Stage) -> str:
    make_topic(stage.cluster, stage.topic)
    winner, _ = stage.task(0, attempt=0), stage.task(0, attempt=1)
    try:
        commit_all(stage.sink(), [winner])
    except PipelineFailed:
        return "refused"
    return rows_seen(stage, 1)


def ten_records(stage: Stage) -> None:
    make_topic(stage.cluster, stage.topic)
    write(stage.cluster, stage.topic, numbered(10))
    open_or_create(stage.folder)


def offsets_in(paths: Sequence[Path]) -> list[Any]:
    return [offset for path in paths for offset in pq.ParquetFile(path).read(["offset"]).column("offset").to_pylist()]


def live_offsets(stage: Stage) -> str:
    return came_of(range(10), offsets_in([stage.folder / path for path in read_log(stage.folder).live]))


def a_task_archives_again(stage: Stage) -> str:
    ten_records(stage)
    with dying_at("archive: files written"):
        stage.archived(0, 10)
    commit_batch(stage.folder, [stage.archived(0, 10)])
    return came_of(range(10), offsets_in(sorted(stage.folder.rglob("*.parquet"))))  # as another program reads it


def a_task_says_too_little(stage: Stage) -> str:
    """Of ten offsets it has five records, and says nothing of the others."""
    ten_records(stage)
    try:
        commit_batch(stage.folder, [replace(stage.archived(0, 5), end=10)])
    except PipelineFailed:
        commit_batch(stage.folder, [stage.archived(0, 10)])
    return live_offsets(stage)


def an_archive_is_run_again(stage: Stage) -> str:
    """The driver died right after the commit."""
    ten_records(stage)
    asked = read_options({"kafka.bootstrap.servers": stage.bootstrap, "subscribe": stage.topic}, "batch")
    try:
        for _ in range(2):
            ahead = pending_offsets(stage.cluster, asked, read_log(stage.folder).ends())
            if ahead.start != ahead.end:
                commit_batch(stage.folder, [stage.archived(ahead.start[stage.of], ahead.end[stage.of])])
    except PipelineFailed:
        return "refused"
    return live_offsets(stage)


def a_batch_that_does_not_follow(stage: Stage) -> str:
    ten_records(stage)
    commit_batch(stage.folder, [stage.archived(0, 4)])
    try:
        commit_batch(stage.folder, [stage.archived(6, 10)])
    except PipelineFailed:
        commit_batch(stage.folder, [stage.archived(4, 10)])
    return live_offsets(stage)


def two_writers_want_one_number(stage: Stage) -> str:
    ten_records(stage)
    for start in (0, 5):
        one = stage.archived(start, start + 5)
        actions = [{"commitInfo": {"tailrace": {"ranges": [one.to_dict()]}}}, *add_actions([one], 0)]
        try:
            commit(stage.folder, 1, actions)
        except CommitTaken:
            commit(stage.folder, 2, actions)
    return live_offsets(stage)


def values_in(stage: Stage, paths: Sequence[str]) -> str:
    there = [stage.folder / path for path in paths if (stage.folder / path).exists()]
    values = [value for path in there for value in pq.ParquetFile(path).read(["value"]).column("value").to_pylist()]
    return came_of([one.value for one in numbered(10)], values)


def two_ranges(stage: Stage) -> list[ArchivedRange]:
    ten_records(stage)
    for start in (0, 5):
        commit_batch(stage.folder, [stage.archived(start, start + 5)])
    return read_log(stage.folder).ranges


def a_damaged_file_is_to_be_merged(stage: Stage) -> str:
    ranges = two_ranges(stage)
    shutil.copytree(stage.folder, stage.folder.with_name("copy"))
    change_value(stage.folder, random.Random(1))
    try:
        one = merged(ranges, stage.folder)
    except PipelineFailed:
        shutil.copytree(stage.folder.with_name("copy"), stage.folder, dirs_exist_ok=True)
        one = merged(ranges, stage.folder)
    commit_merged(stage.folder, [(ranges, one)])
    return values_in(stage, sorted(read_log(stage.folder).live))


def a_merged_range_has_too_little(stage: Stage) -> str:
    """One of two ranges was forgotten, and the merged one is said to stand for both."""
    ranges = two_ranges(stage)
    short = replace(ranges[0], end=10)
    try:
        commit_merged(stage.folder, [(ranges, short)])
    except PipelineFailed:
        commit_merged(stage.folder, [(ranges, merged(ranges, stage.folder))])
    return live_offsets(stage)


def a_reader_has_listed_what_is_replaced(stage: Stage) -> str:
    ranges = two_ranges(stage)
    listed = sorted(read_log(stage.folder).live)
    commit_merged(stage.folder, [(ranges, merged(ranges, stage.folder))])
    vacuum(stage.folder)
    return values_in(stage, listed)


def a_query_dies_in_its_first_batch(stage: Stage) -> str:
    """It was to begin at the end, which has moved on when it is started again."""
    make_topic(stage.cluster, stage.topic)
    given = {"kafka.bootstrap.servers": stage.bootstrap, "subscribe": stage.topic, "queryId": stage.topic}
    StreamReader(read_options(given, "stream"), StructType()).initialOffset()
    write(stage.cluster, stage.topic, numbered(10))
    start = StreamReader(read_options(given, "stream"), StructType()).initialOffset()
    return came_of(range(10), range(start[stage.topic]["0"], 10))


def a_bit_is_flipped_on_the_way(stage: Stage) -> str:
    sent = bytes(build_batch(numbered(10)))
    arrived = bytearray(sent)
    arrived[sent.index(b"value 7")] ^= 1
    try:
        columns = decode(select_visible(arrived))
    except CorruptBatch:
        columns = decode(select_visible(sent))
    return came_of([one.value for one in numbered(10)], columns.value.to_pylist() if columns else [])


def a_replay_is_run_again(stage: Stage) -> str:
    ten_records(stage)
    into = f"{stage.topic}-again"
    make_topic(stage.cluster, into)
    told = [stage.archived(0, 10).to_dict()]
    wanted = ReplayParameters(
        replay_id=stage.topic, access=Access(bootstrap=stage.bootstrap), history=str(stage.folder), into=into
    )
    with dying_at("replay: committed"):
        replay_partition(told, asdict(wanted))
    replay_partition(told, asdict(wanted))
    return came_of([one.value for one in numbered(10)], values_in_topic(stage.cluster, into))
