"""A streaming read: each micro-batch reads from the end of the last one to the latest offset that the options allow.

Spark keeps the offsets in its checkpoint, with one exception: if a query died in its very first micro-batch, Spark asks
for the initial offset again. A start at `latest` would then skip the records written in between, so the initial offset
is committed to the broker, in a group named after the option `queryId`, before Spark gets it. Consumed offsets are
committed to a group as well, one micro-batch late, when Spark reports them. They are for people and tools that monitor
the lag; reading never starts from them.
"""

import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from tailrace.pipeline.failure import DataLost, PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import (
    Offsets,
    commit_offsets,
    committed_offsets,
    end_offsets,
    recheck_ends,
    start_offsets,
)
from tailrace.pipeline.source.batch import clamp_to_log, read_task
from tailrace.pipeline.source.offset_json import OffsetJson, from_json, to_json
from tailrace.pipeline.source.offset_spec import resolve
from tailrace.pipeline.source.options import ReadOptions
from tailrace.pipeline.source.range_planning import limit_ends, plan_ranges
from tailrace.pipeline.source.task import ADVICE, GONE_ADVICE

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions, schema: "StructType") -> None:
        self._options = options
        self._task = read_task(options, schema)
        self._cluster: Cluster | None = None  # used on the driver; each task has its own
        self._target: Offsets | None = None  # the end offsets with Trigger.AvailableNow
        # When a micro-batch was last not held back; None: none requested yet.
        self._last_trigger_at: float | None = None

    def initialOffset(self) -> OffsetJson:  # noqa: N802 Spark's name, as for the methods below
        options = self._options
        partitions = options.subscription.partitions(self._brokers())
        if not options.start.changes_over_time:
            return to_json(resolve(self._brokers(), options.start, partitions, committed=options.committed))
        kept = committed_offsets(self._brokers(), options.start_group, partitions)
        if not kept:
            kept = resolve(self._brokers(), options.start, partitions, committed=options.committed)
            commit_offsets(self._brokers(), options.start_group, kept, note=f"start of {options.query_id}")
        later = [one for one in partitions if one not in kept]
        return to_json({**kept, **start_offsets(self._brokers(), later)})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_offsets is not None:
            return ReadMaxRows(self._options.max_offsets)
        return ReadAllAvailable()

    def latestOffset(self, start: OffsetJson, limit: ReadLimit) -> OffsetJson:  # noqa: N802
        begin = self._known(from_json(start))
        end = recheck_ends(self._brokers(), begin, self._ends(), committed=self._options.committed)
        begin = self._read_from(begin, end)
        if self._should_wait(begin, end, limit):
            return start
        if isinstance(limit, ReadMaxRows):
            end = limit_ends(begin, end, limit.max_rows)
        return to_json(end)

    def reportLatestOffset(self) -> OffsetJson:  # noqa: N802
        return to_json(self._ends())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ends()

    def partitions(self, start: OffsetJson, end: OffsetJson) -> list[InputPartition]:
        options = self._options
        last = from_json(end)
        begin = self._read_from(self._known(from_json(start)), last)
        begin = clamp_to_log(self._brokers(), begin, last, options)
        found = plan_ranges(begin, last, min_ranges=options.min_partitions, max_records=options.max_records)
        return [InputPartition(one) for one in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._task.rows(partition.value)

    def commit(self, end: OffsetJson) -> None:
        if self._options.group:
            commit_offsets(self._brokers(), self._options.group, from_json(end))

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}  # connections are not sent to tasks

    def _brokers(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._options.access.cluster()
        return self._cluster

    def _known(self, begin: Offsets) -> Offsets:
        """The start offset of each existing partition; a new partition is read from the beginning of its log."""
        partitions = self._options.subscription.partitions(self._brokers())
        gone = [one for one in begin if one not in partitions]
        if gone and self._options.fail_on_data_loss:
            raise DataLost(f"{self._why_missing(gone[0])}. {GONE_ADVICE}")
        fresh = [one for one in partitions if one not in begin]
        return {one: begin[one] for one in begin if one in partitions} | start_offsets(self._brokers(), fresh)

    def _why_missing(self, gone: TopicPartition) -> str:
        asked = self._options.subscription
        try:
            is_there = gone in self._brokers().partitions([gone.topic])
        except PipelineFailed:
            is_there = False
        if is_there:
            return f"{gone} was read before, and is not among what is asked for now ({asked.kind} {asked.value})"
        return f"{gone} is not there any more: its topic was deleted"

    def _read_from(self, begin: Offsets, end: Offsets) -> Offsets:
        """The offsets to read from. A log that ends before its begin offset is a new log: read from its beginning."""
        other = [one for one in end if end[one] < begin.get(one, 0)]
        for one in other:
            said = (
                f"{one} was read up to offset {begin[one]}, but its log ends at {end[one]}: "
                "was it deleted and created again?"
            )
            if self._options.fail_on_data_loss:
                raise DataLost(f"{said} {ADVICE}")
            warnings.warn(f"{said} It is read from its beginning", stacklevel=2)
        return {one: begin.get(one, 0) for one in end} | start_offsets(self._brokers(), other)

    def _ends(self) -> Offsets:
        partitions = self._options.subscription.partitions(self._brokers())
        end = end_offsets(self._brokers(), partitions, committed=self._options.committed)
        if self._target is None:
            return end
        return {one: min(offset, self._target[one]) for one, offset in end.items() if one in self._target}

    def _should_wait(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> bool:
        """Whether there are too few offsets for a micro-batch, by `minOffsetsPerTrigger`. As in Spark's kafka source,
        the first micro-batch never waits, and an expired `maxTriggerDelay` starts again, with or without records."""
        wanted = limit.min_rows if isinstance(limit, ReadMinRows) else self._options.min_offsets
        if wanted is None or self._target is not None:
            return False
        now, before = time.monotonic(), self._last_trigger_at
        is_due = before is None or (now - before) * 1000 >= self._options.max_delay_ms
        if not is_due and sum(end.values()) - sum(begin.values()) < wanted:
            return True
        self._last_trigger_at = now
        return False
