"""Read a range of offsets of one partition, batch by batch.

The next fetch request is sent before the last response is processed, so that broker and reader work at the same time.
The bytes of a response are valid until the caller asks for the next one.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tailrace.client.visible_batches import ExpectedOffsets, VisibleBatches, select_visible
from tailrace.model.limits import MiB
from tailrace.pipeline.failure import DataLost, NoBrokerAvailable
from tailrace.pipeline.kafka.cleanup_policy import compacted_topics
from tailrace.pipeline.kafka.cluster import RETRY_PAUSE_S, Cluster, RetriableError, TopicPartition, check
from tailrace.pipeline.kafka.damaged import UNREADABLE, Damaged, Flaw, OnDamaged, end_of_flaw, find_flaw, raise_damaged
from tailrace.records.opened import batches
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch

FETCH_BYTES: Final = 4 * MiB
WAIT_MS: Final = 500
# Responses in a row without records: in a compacted topic, the rest of the range is empty.
EMPTY_RESPONSES_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Offsets of one partition, from `start` (inclusive) to `end` (exclusive)."""

    partition: TopicPartition
    start: int
    end: int


def fetch(
    cluster: Cluster,
    requested: OffsetRange,
    *,
    committed: bool,
    max_bytes: int = FETCH_BYTES,
    on_damaged: OnDamaged = raise_damaged,
) -> Iterator[VisibleBatches]:
    """The batches of a range. `DataLost` when the log no longer has the offset that is read next.

    A damaged batch is passed to `on_damaged`: if the callback does not raise, reading continues after the batch."""
    reader = RangeReader(cluster, requested, committed=committed, max_bytes=max_bytes)
    deadline = time.monotonic() + cluster.retry_timeout_s
    flawed_at = -1  # the offset at which the last response had a flaw
    while True:
        try:
            for visible in reader.responses():
                yield visible
                deadline = time.monotonic() + cluster.retry_timeout_s
            if reader.flaw is None:
                return
            if flawed_at == reader.at:
                on_damaged(reader.skip_flawed(reader.flaw))
                flawed_at = -1
            else:
                flawed_at = reader.at
                cluster.close()
        except (RetriableError, NoBrokerAvailable) as why:
            if time.monotonic() > deadline:
                raise NoBrokerAvailable(
                    f"{why}; given up after {cluster.retry_timeout_s:g} s without a record"
                ) from None
            cluster.close()
            time.sleep(RETRY_PAUSE_S)
            cluster.partitions([requested.partition.topic])  # retries; fails when no broker answers in time


class RangeReader:
    """The progress of reading one range."""

    def __init__(self, cluster: Cluster, requested: OffsetRange, *, committed: bool, max_bytes: int) -> None:
        self._cluster, self._requested = cluster, requested
        self._committed, self._max_bytes = committed, max_bytes
        self.at = requested.start
        self.flaw: Flaw | None = None  # the flawed batch at `at` that stopped the reading, if any
        self._is_compacted: bool | None = None  # None: not looked up yet

    def responses(self) -> Iterator[VisibleBatches]:
        """Fetch from the current offset up to the end of the range or to a flawed batch."""
        self.flaw = None
        end, partition = self._requested.end, self._requested.partition
        connection = self._cluster.with_retries(lambda: self._cluster.leader(partition))
        try:
            if self.at < end:
                connection.send(self._request(self.at, self._max_bytes))
            empty_responses = 0
            while self.at < end and empty_responses < EMPTY_RESPONSES_MAX and self.flaw is None:
                got = _partition_response(connection.receive())
                _check(got, partition, self.at)
                data = got.records if got.records is not None else memoryview(b"")
                after = _after(data, self.at)
                if after < end:
                    connection.send(self._request(after, self._max_bytes))
                visible = self._visible(got, data)
                empty_responses = 0 if visible.end > self.at else empty_responses + 1
                if visible.end > self.at:
                    yield visible
                    self.at = visible.end
                elif self.flaw is None:
                    self._demand_more(got)
        finally:
            connection.drain()  # leave no response pending, even if the caller stops early
        if self.at < end and self.flaw is None:
            self._demand_compaction()

    def skip_flawed(self, flaw: Flaw) -> Damaged:
        """Move on to the offset after a flawed batch; return the damaged batch."""
        partition, start = self._requested.partition, self._requested.start
        first = flaw.base if self.at == start and 0 <= flaw.base <= start else self.at
        self.at = end_of_flaw(flaw, self.at, self._requested.end, self._fetch_at)
        return Damaged(partition=partition, first=first, last=self.at - 1, why=flaw.why, data=flaw.data)

    def _visible(self, got: Any, data: memoryview) -> VisibleBatches:
        aborted = (got.aborted_transactions or ()) if self._committed else None
        expected = ExpectedOffsets(self.at, self._requested.end, got.high_watermark)
        try:
            visible = select_visible(data, aborted, expected)
            if visible.end >= 0 or not data:
                return visible
        except UNREADABLE:
            pass
        self.flaw = find_flaw(data, expected)
        return select_visible(data[: self.flaw.place], aborted, expected)

    def _demand_more(self, got: Any) -> None:
        readable = got.last_stable_offset if self._committed else got.high_watermark
        if readable < self._requested.end:
            raise RetriableError(
                f"{self._requested.partition} can be read up to {readable}, {self._requested.end} was expected"
            )

    def _demand_compaction(self) -> None:
        """Raise `RetriableError` unless the topic is compacted: only then may the rest of the range have no records."""
        partition = self._requested.partition
        if self._is_compacted is None:
            self._is_compacted = bool(compacted_topics(self._cluster, [partition.topic]))
        if not self._is_compacted:
            raise RetriableError(
                f"{partition} has no record from offset {self.at} on, and ends at {self._requested.end} or later"
            )

    def _fetch_at(self, offset: int) -> Any:
        """Fetch at one offset: the response has one batch, or none."""

        def ask() -> Any:
            got = _partition_response(self._cluster.leader(self._requested.partition).call(self._request(offset, 1)))
            _check(got, self._requested.partition, offset)
            return got

        return self._cluster.with_retries(ask)

    def _request(self, offset: int, max_bytes: int) -> FetchRequest:
        partition, level = self._requested.partition, int(self._committed)
        one = PartitionToFetch(partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        topic = TopicToFetch(name=partition.topic, partitions=(one,))
        return FetchRequest(
            max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=max_bytes, isolation_level=level, topics=(topic,)
        )


def _partition_response(answer: Any) -> Any:
    """The response's only partition. A broker that throttles a client may answer without one: `RetriableError`."""
    for topic in answer.topics:
        for partition in topic.partitions:
            return partition
    raise RetriableError("the broker's response has no topic: a quota may be exceeded")


def _after(data: memoryview, at: int) -> int:
    """The next fetch offset, according to the batch headers of this response."""
    try:
        return max((header.last_offset + 1 for _, header in batches(data)), default=at)
    except UNREADABLE:
        return at


def _check(got: Any, partition: TopicPartition, at: int) -> None:
    if got.error_code == Error.OFFSET_OUT_OF_RANGE:
        raise DataLost(f"{partition} has no offset {at} any more")
    check(got.error_code, f"read {partition} at offset {at}")
