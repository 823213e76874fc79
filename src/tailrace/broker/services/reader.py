"""Reading records: fetches, which may wait for data, and offset lookups, on partitions that this broker hosts.

A `Fetch` is complete at once if it finds `min_bytes` or a fault. Otherwise it waits, watching the high watermarks and
leaders of its partitions, until there are `min_bytes`, a leader changes, or `max_wait_ms` is over. Records that are not
in the page cache are read by another thread, so that the event loop is not blocked. At least one batch is returned even
if it exceeds the limits: a consumer must not get stuck at a large batch.

A follower serves records below the high watermark that it knows (KIP-392). A fetch at an offset that is in its log, but
above that high watermark, waits, and fails with OFFSET_NOT_AVAILABLE when the time is up. With read_committed, a fetch
ends at the last stable offset, and lists the aborted transactions among its records (KIP-98).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple, Protocol

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.nearest import nearer_replica
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.read_ahead import Piece, ReadAhead
from tailrace.log.index.time_lookup import Timed
from tailrace.log.log import Read
from tailrace.log.state.aborted_index import Aborted
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault
from tailrace.model.ids import BrokerId, Id
from tailrace.model.limits import FETCH_WAIT_MAX_MS
from tailrace.ports import Clock
from tailrace.ports.disk import Buffer
from tailrace.wire.hot_fetch import PartitionFetched, PartitionWanted

__all__ = ["Fetch", "FetchOptions", "Position", "ProducerSeen", "Reader", "Refused", "Runner", "Timed"]

NO_TIME: Final = -1
NOT_FOUND: Final = Timed(offset=-1, timestamp=NO_TIME, epoch=-1)


class Position(Enum):
    """A position in a partition that ListOffsets can look up, besides timestamps."""

    EARLIEST = auto()
    LATEST = auto()
    MAX_TIMESTAMP = auto()  # the record with the largest timestamp
    NOWHERE = auto()  # in tiered storage, which this broker does not have


class Refused(NamedTuple):
    """A partition whose fetch failed, and why."""

    partition: int
    fault: Fault
    state: PartitionFetched | None = None  # its offsets, without records, if the partition was found


Result = PartitionFetched | Refused


class FetchOptions(NamedTuple):
    committed: bool  # read_committed: nothing past the last stable offset
    from_followers: bool  # the client may read from followers
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    rack: str  # of the consumer; empty: unknown


class ProducerSeen(NamedTuple):
    """The state of a producer in a partition."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start: int  # offset; -1: no transaction is open


class Runner(Protocol):
    """Runs the parts of a request that cannot be answered at once: the client's connection."""

    def run_in_task(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Run work in its own task."""

    def failed(self, what: str) -> None:
        """Called inside an except clause: this request failed with an unexpected error."""


class Reader:
    def __init__(self, hosted: HostedPartitions, read_ahead: ReadAhead, clock: Clock, partition_max_bytes: int) -> None:
        self._hosted = hosted
        self._read_ahead = read_ahead
        self._clock = clock
        self._partition_max_bytes = partition_max_bytes

    def fetch(
        self,
        who: Caller,
        wanted: Sequence[tuple[str | Id, PartitionWanted]],
        options: FetchOptions,
        runner: Runner,
    ) -> "Fetch":
        """A fetch that has not begun."""
        return Fetch(self, wanted, options, runner)

    async def find_offset(
        self, who: Caller, topic: str, number: int, leader_epoch: int, at: Position | int, *, committed: bool
    ) -> Timed:
        """The offset of a position, or of the first record with timestamp `at` (in ms) or later; offset -1: none."""
        partition = self._led(topic, number, leader_epoch)
        limit, log = partition.readable(committed=committed), partition.log
        match at:
            case Position.LATEST:
                return Timed(limit, NO_TIME, partition.epoch)
            case Position.EARLIEST:
                epoch = log.epochs.epoch_at(log.start)
                return Timed(log.start, NO_TIME, partition.epoch if epoch < 0 else epoch)
            case Position.MAX_TIMESTAMP:
                return await log.max_timestamp(limit) or NOT_FOUND
            case Position.NOWHERE:
                return NOT_FOUND
            case int():
                return await log.offset_for_time(at, limit) or NOT_FOUND

    def end_of_epoch(self, who: Caller, topic: str, number: int, leader_epoch: int, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` in a partition's log, and its end offset; (-1, -1): unknown."""
        return self._led(topic, number, leader_epoch).end_of_epoch(epoch)

    def producers(self, who: Caller, topic: str, number: int) -> Iterator[ProducerSeen]:
        """The producer states of a partition that this broker leads."""
        states = self._led(topic, number, -1).log.producers
        for producer_id, producer in states.items():
            yield ProducerSeen(
                producer_id,
                producer.epoch,
                producer.last_sequence,
                producer.used_ms,
                producer.coordinator_epoch,
                states.transactions.open.get(producer_id, -1),
            )

    def _led(self, topic: str, number: int, leader_epoch: int) -> Partition:
        partition = self._hosted.find(topic, number)
        partition.require_leader()
        partition.require_epoch(leader_epoch)
        return partition

    # Used by `Fetch`

    def readable(self, topic: str | Id, wanted: PartitionWanted, *, from_followers: bool) -> Partition:
        partition = self._hosted.find(topic, wanted.partition)
        if from_followers:
            partition.require_readable()
        else:
            partition.require_leader()
        partition.require_epoch(wanted.leader_epoch)
        return partition

    def nearer_replica(self, partition: Partition, rack: str, offset: int) -> BrokerId | None:
        return nearer_replica(partition, self._hosted.image.brokers, rack, offset, self._clock.monotonic())

    def piece(self, partition: Partition, wanted: PartitionWanted, room: int, committed: bool) -> Piece:
        max_bytes = min(wanted.max_bytes, room, self._partition_max_bytes)
        return Piece(partition, wanted.offset, max_bytes, committed)

    def read(self, piece: Piece) -> Read | None:
        """Read a piece if it is in memory; None: it must be read from disk."""
        return self._read_ahead.read(piece)

    def prepare(self, pieces: Sequence[Piece]) -> None:
        self._read_ahead.prepare(pieces)


class ColdRead(NamedTuple):
    """A read that must wait for the disk: where its result goes, and what to read."""

    topic: str | Id
    place: int
    wanted: PartitionWanted
    piece: Piece


class Seen(NamedTuple):
    """The state of a partition when it was last read."""

    bytes_appended: int  # -1: unknown, because the log was not readable to its end
    epoch: int


class Fetch:
    """One fetch, from the first read to its results."""

    def __init__(
        self,
        reader: Reader,
        wanted: Sequence[tuple[str | Id, PartitionWanted]],
        options: FetchOptions,
        runner: Runner,
    ) -> None:
        self._reader = reader
        self._wanted = wanted
        self._options = options
        self._runner = runner
        self._done: Callable[[], None] | None = None
        self._watched: dict[Partition, Seen] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._retrying = False
        self.results: dict[str | Id, list[Result]] = {}

    def begin(self, done: Callable[[], None]) -> bool:
        """Read; True: the fetch is complete. Otherwise `done` is called when it is.

        `done` mostly belongs to an object that holds this fetch. It is kept only until it is called: in a reference
        cycle, the records would occupy memory until the next garbage collection."""
        self._read_all()
        max_wait_s = min(self._options.max_wait_ms, FETCH_WAIT_MAX_MS) / 1000
        if not self._cold and (self._enough or max_wait_s <= 0):
            return True
        self._done = done
        if self._cold:
            self._read_cold()
            return False
        self._timer = asyncio.get_running_loop().call_later(max_wait_s, self._guarded, self._finish)
        self._remember()
        for partition in self._watched:
            partition.watch(self._partition_changed)
        return False

    def cancel(self) -> None:
        """Stop waiting: the results are no longer wanted."""
        self._stop_waiting()
        self._done = None

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self._watched:
            partition.unwatch(self._partition_changed)
        self._watched = {}

    @property
    def reads_ahead(self) -> bool:
        """Whether there is something to read ahead."""
        return bool(self._next)

    def read_ahead(self) -> None:
        """Read what the client will fetch next; call this when the client has received the response."""
        self._reader.prepare(self._next)

    # Reading

    def _read_all(self) -> None:
        """Read the partitions one after the other, within the limits."""
        self.results = {}
        self._found: list[Partition] = []
        self._cold: list[ColdRead] = []
        self._next: list[Piece] = []  # what the client will fetch next
        self._size = 0
        # Do not wait: a partition failed, or has more than one response can hold, or the request is for no partition at
        # all, which ends a fetch session.
        self._must_answer = not self._wanted
        for topic, wanted in self._wanted:
            results = self.results.setdefault(topic, [])
            results.append(self._read_partition(topic, len(results), wanted))

    @property
    def _enough(self) -> bool:
        return self._size >= self._options.min_bytes or self._must_answer

    def _read_partition(self, topic: str | Id, place: int, wanted: PartitionWanted) -> Result:
        options, reader = self._options, self._reader
        try:
            partition = reader.readable(topic, wanted, from_followers=options.from_followers)
            if options.rack:
                nearer = reader.nearer_replica(partition, options.rack, wanted.offset)
                if nearer is not None:
                    self._must_answer = True
                    return _fetched(wanted, partition, b"")._replace(preferred_replica=nearer)
            self._found.append(partition)
            if (not_yet := partition.not_available(wanted.offset)) is not None:
                return Refused(wanted.partition, not_yet, _fetched(wanted, partition, b""))
            room = options.max_bytes - self._size
            if self._size and room <= 0:
                return _fetched(wanted, partition, b"")
            piece = reader.piece(partition, wanted, room, options.committed)
            read = reader.read(piece)
            aborted = self._aborted_in(partition, wanted.offset, read) if read and options.committed else None
            if read is None or (aborted is None and options.committed):
                self._cold.append(ColdRead(topic, place, wanted, piece))
                return _fetched(wanted, partition, b"")
            return self._add(wanted, piece, read, aborted)
        except Fault as fault:
            self._must_answer = True
            return Refused(wanted.partition, fault)

    def _aborted_in(self, partition: Partition, offset: int, read: Read) -> list[Aborted] | None:
        return partition.log.aborted_between(offset, read.next_offset) if read.data else []

    def _add(
        self, wanted: PartitionWanted, piece: Piece, read: Read, aborted: list[Aborted] | None
    ) -> PartitionFetched:
        """Add records to the response, if they do not exceed its size limit."""
        partition = piece.partition
        if self._size and len(read.data) > self._options.max_bytes - self._size:
            return _fetched(wanted, partition, b"")  # only the first batch may exceed the limit
        self._size += len(read.data)
        if read.data and read.next_offset < partition.readable(committed=self._options.committed):
            self._must_answer = True
            self._next.append(piece._replace(offset=read.next_offset))
        listed = None if aborted is None else [(one.producer_id, one.first_offset) for one in aborted]
        return _fetched(wanted, partition, read.data, listed)

    # Waiting

    def _partition_changed(self) -> None:
        """A high watermark or a leader changed: read again, once for all changes of this iteration of the loop."""
        if not self._retrying:
            self._retrying = True
            asyncio.get_running_loop().call_soon(self._guarded, self._retry)

    def _retry(self) -> None:
        self._retrying = False
        if self._timer is None or not self._may_be_enough():
            return
        leader_changed = any(partition.epoch != seen.epoch for partition, seen in self._watched.items())
        self._read_all()
        if self._cold:
            self._stop_waiting()
            self._read_cold()
        elif self._enough or leader_changed:
            self._finish()
        else:
            self._remember()

    def _remember(self) -> None:
        """Note the state of the partitions that were just read."""
        self._watched = {
            partition: Seen(partition.bytes_appended if self._reads_to_end(partition) else -1, partition.epoch)
            for partition in self._found
        }

    def _reads_to_end(self, partition: Partition) -> bool:
        return partition.readable(committed=self._options.committed) == partition.log.end

    def _may_be_enough(self) -> bool:
        """Whether reading again may find `min_bytes`; True in doubt. Counting bytes is cheaper than reading."""
        size = self._size
        for partition, seen in self._watched.items():
            if seen.bytes_appended < 0 or partition.epoch != seen.epoch or not partition.leads:
                return True
            size += partition.bytes_appended - seen.bytes_appended
        return size >= self._options.min_bytes

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run a callback of the event loop; an unexpected error closes only this request's connection."""
        try:
            work()
        except Exception:
            self._runner.failed("a waiting Fetch")

    def _finish(self) -> None:
        self._stop_waiting()
        done, self._done = self._done, None
        if done is not None:
            done()

    def _read_cold(self) -> None:
        self._runner.run_in_task(self._read_off_loop(), "a Fetch")

    async def _read_off_loop(self) -> None:
        for cold in self._cold:
            result: Result
            try:
                result = self._add(cold.wanted, cold.piece, *await self._read_one_cold(cold.piece))
            except Fault as fault:
                self._must_answer = True
                result = Refused(cold.wanted.partition, fault)
            self.results[cold.topic][cold.place] = result
        self._finish()

    async def _read_one_cold(self, piece: Piece) -> tuple[Read, list[Aborted] | None]:
        partition, offset, committed = piece.partition, piece.offset, self._options.committed
        while True:
            swaps = partition.log.swaps
            read = await piece.read_cold()
            if not committed:
                return read, None
            aborted = await partition.log.aborted_between_cold(offset, read.next_offset) if read.data else []
            if swaps == partition.log.swaps:  # else compaction may have removed what only the old bytes need
                return read, aborted


def _fetched(
    wanted: PartitionWanted, partition: Partition, records: Buffer, aborted: list[tuple[int, int]] | None = None
) -> PartitionFetched:
    log, high_watermark = partition.log, partition.high_watermark
    stable = log.last_stable(high_watermark)
    return PartitionFetched(wanted.partition, 0, high_watermark, stable, log.start, records, aborted=aborted)
