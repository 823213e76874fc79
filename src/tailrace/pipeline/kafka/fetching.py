"""Read a range of offsets of one partition, batch by batch.

The next fetch request is sent before the last response is processed, so that broker and reader work at the same time.
The bytes of a response are valid until the caller asks for the next one.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tailrace.model.limits import MiB
from tailrace.pipeline.arrow.choosing import Asked, Chosen, choose
from tailrace.pipeline.failure import BrokersSilent, DataLost
from tailrace.pipeline.kafka.cluster import PAUSE_S, AskAgain, Cluster, TopicPartition, check
from tailrace.pipeline.kafka.damaged import UNREADABLE, Damaged, Flaw, OnDamaged, end_of, flaw_in, refuse
from tailrace.pipeline.kafka.policies import compacted
from tailrace.records.opened import batches
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch

FETCH_BYTES: Final = 4 * MiB
WAIT_MS: Final = 500
IN_VAIN_MAX: Final = 3  # responses in a row without records: in a compacted topic, the rest of the range is empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Offsets of one partition, from `start` (inclusive) to `end` (exclusive)."""

    partition: TopicPartition
    start: int
    end: int


def fetch(
    cluster: Cluster,
    wanted: Range,
    *,
    committed: bool,
    max_bytes: int = FETCH_BYTES,
    on_damaged: OnDamaged = refuse,
) -> Iterator[Chosen]:
    """The batches of a range. `DataLost` when the log no longer has the offset that is read next.

    A damaged batch is passed to `on_damaged`: if the callback does not raise, reading continues after the batch."""
    reading = Reading(cluster, wanted, committed=committed, max_bytes=max_bytes)
    deadline = time.monotonic() + cluster.patience_s
    doubted = -1  # the offset at which the last response had a flaw
    while True:
        try:
            for chosen in reading.answers():
                yield chosen
                deadline = time.monotonic() + cluster.patience_s
            if reading.flaw is None:
                return
            if doubted == reading.at:
                on_damaged(reading.pass_over(reading.flaw))
                doubted = -1
            else:
                doubted = reading.at
                cluster.close()
        except (AskAgain, BrokersSilent) as why:
            if time.monotonic() > deadline:
                raise BrokersSilent(f"{why}; given up after {cluster.patience_s:g} s without a record") from None
            cluster.close()
            time.sleep(PAUSE_S)
            cluster.partitions([wanted.partition.topic])  # retries; fails when no broker answers in time


class Reading:
    """The progress of reading one range."""

    def __init__(self, cluster: Cluster, wanted: Range, *, committed: bool, max_bytes: int) -> None:
        self._cluster, self._wanted = cluster, wanted
        self._committed, self._max_bytes = committed, max_bytes
        self.at = wanted.start
        self.flaw: Flaw | None = None  # the flawed batch at `at` that stopped the reading, if any
        self._is_compacted: bool | None = None  # None: not looked up yet

    def answers(self) -> Iterator[Chosen]:
        """Fetch from the current offset up to the end of the range or to a flawed batch."""
        self.flaw = None
        end, partition = self._wanted.end, self._wanted.partition
        connection = self._cluster.until_answered(lambda: self._cluster.leader(partition))
        try:
            if self.at < end:
                connection.send(self._request(self.at, self._max_bytes))
            in_vain = 0
            while self.at < end and in_vain < IN_VAIN_MAX and self.flaw is None:
                got = _only(connection.receive())
                _check(got, partition, self.at)
                data = got.records if got.records is not None else memoryview(b"")
                after = _after(data, self.at)
                if after < end:
                    connection.send(self._request(after, self._max_bytes))
                chosen = self._chosen(got, data)
                in_vain = 0 if chosen.end > self.at else in_vain + 1
                if chosen.end > self.at:
                    yield chosen
                    self.at = chosen.end
                elif self.flaw is None:
                    self._demand_more(got)
        finally:
            connection.drain()  # leave no response pending, even if the caller stops early
        if self.at < end and self.flaw is None:
            self._demand_compaction()

    def pass_over(self, flaw: Flaw) -> Damaged:
        """Move on to the offset after a flawed batch; return the damaged batch."""
        partition, start = self._wanted.partition, self._wanted.start
        first = flaw.base if self.at == start and 0 <= flaw.base <= start else self.at
        self.at = end_of(flaw, self.at, self._wanted.end, self._look)
        return Damaged(partition=partition, first=first, last=self.at - 1, why=flaw.why, data=flaw.data)

    def _chosen(self, got: Any, data: memoryview) -> Chosen:
        aborted = (got.aborted_transactions or ()) if self._committed else None
        asked = Asked(self.at, self._wanted.end, got.high_watermark)
        try:
            chosen = choose(data, aborted, asked)
            if chosen.end >= 0 or not data:
                return chosen
        except UNREADABLE:
            pass
        self.flaw = flaw_in(data, asked)
        return choose(data[: self.flaw.place], aborted, asked)

    def _demand_more(self, got: Any) -> None:
        readable = got.last_stable_offset if self._committed else got.high_watermark
        if readable < self._wanted.end:
            raise AskAgain(f"{self._wanted.partition} can be read up to {readable}, {self._wanted.end} was expected")

    def _demand_compaction(self) -> None:
        """Raise `AskAgain` unless the topic is compacted: only then may the rest of the range have no records."""
        partition = self._wanted.partition
        if self._is_compacted is None:
            self._is_compacted = bool(compacted(self._cluster, [partition.topic]))
        if not self._is_compacted:
            raise AskAgain(
                f"{partition} has no record from offset {self.at} on, and ends at {self._wanted.end} or later"
            )

    def _look(self, offset: int) -> Any:
        """Fetch at one offset: the response has one batch, or none."""

        def ask() -> Any:
            got = _only(self._cluster.leader(self._wanted.partition).call(self._request(offset, 1)))
            _check(got, self._wanted.partition, offset)
            return got

        return self._cluster.until_answered(ask)

    def _request(self, offset: int, max_bytes: int) -> FetchRequest:
        partition, level = self._wanted.partition, int(self._committed)
        one = PartitionToFetch(partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        topic = TopicToFetch(name=partition.topic, partitions=(one,))
        return FetchRequest(
            max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=max_bytes, isolation_level=level, topics=(topic,)
        )


def _only(answer: Any) -> Any:
    """The response's only partition. A broker that throttles a client may answer without one: `AskAgain`."""
    for topic in answer.topics:
        for partition in topic.partitions:
            return partition
    raise AskAgain("the broker answers with no topic: a quota of it may be used up")


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
