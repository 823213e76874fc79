"""A consumer: reads the records of partitions in order, from the offsets that it is given or has committed.

    async with Consumer(cluster) as consumer:
        consumer.assign({PartitionName("orders", 0): 0})
        for record in await consumer.poll():
            ...

For each broker that leads an assigned partition there is one request under way, in a fetch session, over a connection
of its own. A partition is not fetched again before its records were taken, so the buffer is bounded by one response
per broker.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import inf
from typing import Any, Final, Literal, NamedTuple, Self

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import ClientError, Refused, error_of
from tailrace.client.fetch_session import FetchSession, Wanted
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.client.visible_batches import select_visible
from tailrace.model.addresses import Address
from tailrace.model.faults import Fault
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.model.limits import MiB
from tailrace.records.opened import open_batch
from tailrace.records.record import Headers, Record
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchResponse, PartitionFetched

OffsetReset = Literal["earliest", "latest", "error"]
PAUSE_S: Final = 0.1  # before a partition whose leader is not known, or does not answer, is fetched again
MOVED: Final = (Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH)


@frozen
class ConsumerOptions:
    reads_committed: bool = True
    reset: OffsetReset = "error"  # what to do when an offset does not exist, or no longer
    max_wait_ms: int = 500  # how long a broker holds a fetch when there is nothing new
    min_bytes: int = 1
    partition_max_bytes: int = MiB
    response_max_bytes: int = 16 * MiB


class Received(NamedTuple):
    partition: PartitionName
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class _Assigned:
    """One assigned partition."""

    __slots__ = ("fetch_at", "next_offset", "records", "retry_at")

    def __init__(self, offset: int) -> None:
        self.fetch_at = offset
        self.next_offset = offset  # of the next record to be taken
        self.records: deque[Record] = deque()  # fetched and not taken
        self.retry_at = 0.0  # after an error


class Consumer:
    def __init__(self, cluster: Cluster, options: ConsumerOptions = ConsumerOptions()) -> None:  # noqa: B008
        self._cluster = cluster
        # A fetch that a broker holds must not hold up other requests.
        self._fetching = cluster.with_own_connections(cluster.limits)
        self._options = options
        self._assigned: dict[PartitionName, _Assigned] = {}
        self._sessions: dict[Address, FetchSession] = {}
        self._fetches: dict[Address, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()  # records came, or a fetch ended
        self._failure: ClientError | None = None
        self._interrupted = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def assign(self, offsets: Mapping[PartitionName, int]) -> None:
        """Read these partitions from these offsets on, and no others."""
        kept = {one: found for one, found in self._assigned.items() if one in offsets}
        self._assigned = {
            one: kept[one] if one in kept and kept[one].next_offset == offset else _Assigned(offset)
            for one, offset in offsets.items()
        }

    @property
    def positions(self) -> dict[PartitionName, int]:
        """For each assigned partition the offset of the next record that `poll` returns."""
        return {one: found.next_offset for one, found in self._assigned.items()}

    def seek(self, partition: PartitionName, offset: int) -> None:
        self._assigned[partition] = _Assigned(offset)

    async def poll(self, max_records: int = 500, timeout_s: float = 1.0) -> list[Received]:
        """The next records, at most so many; empty if none come in this time. Raises what no retry can mend."""
        deadline = self._cluster.driver.now() + timeout_s
        while True:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if not any(found.records for found in self._assigned.values()):
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(deadline - self._cluster.driver.now(), 0.0)):
                        await self._find_missing_leaders()
            taken = self._take(max_records)  # nothing waits from here on: a caller that gives up loses no records
            self._fetch_more()
            left_s = deadline - self._cluster.driver.now()
            if taken or left_s <= 0 or self._interrupted:
                self._interrupted = False
                return taken
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, self._next_retry_s())):
                    await self._changed.wait()

    def interrupt(self) -> None:
        """Let the `poll` that waits, or else the next one, return at once, with the records that are there."""
        self._interrupted = True
        self._changed.set()

    def _next_retry_s(self) -> float:
        """How long until a partition may be fetched again after an error."""
        now = self._cluster.driver.now()
        return min((found.retry_at - now for found in self._assigned.values() if found.retry_at > now), default=inf)

    def _take(self, max_records: int) -> list[Received]:
        taken: list[Received] = []
        for partition, found in list(self._assigned.items()):
            while found.records and len(taken) < max_records:
                offset, timestamp, key, value, headers = found.records.popleft()
                taken.append(Received(partition, offset, timestamp, key, value, headers))
                found.next_offset = offset + 1
            if not found.records:
                found.next_offset = found.fetch_at
        return taken

    def close(self) -> None:
        for fetch in self._fetches.values():
            fetch.cancel()
        self._fetches = {}
        self._assigned = {}
        self._fetching.close()

    # Fetching

    def _wanted(self) -> list[PartitionName]:
        """The partitions to fetch now: without records, and not left alone after an error."""
        now = self._cluster.driver.now()
        return [one for one, found in self._assigned.items() if not found.records and found.retry_at <= now]

    async def _find_missing_leaders(self) -> None:
        unknown = [one for one in self._wanted() if self._cluster.map.leader(one) is None]
        if unknown:
            await self._find_leaders(unknown)

    def _fetch_more(self) -> None:
        """Start a fetch from each leader that has none under way and whose partitions have no records left."""
        by_leader: dict[Address, list[PartitionName]] = {}
        for one in self._wanted():
            address = self._cluster.map.leader(one)
            if address is not None:
                by_leader.setdefault(address, []).append(one)
        for address, partitions in by_leader.items():
            if address not in self._fetches:
                fetch = asyncio.get_running_loop().create_task(self._fetch(address, partitions))
                self._fetches[address] = fetch
                fetch.add_done_callback(lambda _, address=address: self._fetched(address))  # type: ignore[misc]

    def _fetched(self, address: Address) -> None:
        self._fetches.pop(address, None)
        self._changed.set()

    async def _find_leaders(self, partitions: Iterable[PartitionName]) -> None:
        try:
            response = await self._cluster.refresh({one.topic: None for one in partitions})
        except Retry:
            self._later(partitions)
            return
        for topic in response.topics:
            error = error_of(topic.error_code)
            if error is not Error.NONE and not error.retriable:
                self._failure = Refused(error, f"read {topic.name}")
        self._later([one for one in partitions if self._cluster.map.leader(one) is None])

    def _later(self, partitions: Iterable[PartitionName]) -> None:
        """Leave these partitions alone for a moment."""
        driver = self._cluster.driver
        retry_at = driver.now() + driver.jitter(0.5, 1.0) * PAUSE_S
        for one in partitions:
            if one in self._assigned:
                self._assigned[one].retry_at = retry_at

    async def _fetch(self, address: Address, partitions: Iterable[PartitionName]) -> None:
        options, session = self._options, self._sessions.setdefault(address, FetchSession())
        wanted = {
            one: Wanted(self._assigned[one].fetch_at, self._cluster.map.leader_epoch(one), options.partition_max_bytes)
            for one in partitions
            if one in self._assigned
        }
        request = session.request(
            wanted,
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.response_max_bytes,
            committed=options.reads_committed,
        )
        try:
            response = await self._fetching.call(address, request)
        except Retry:
            session.reset()
            for one in wanted:
                self._cluster.map.forget_leader(one)
            self._later(wanted)
            return
        except ClientError as error:
            session.reset()
            self._failure = error
            return
        code = error_of(response.error_code)
        if session.accepts(response) and code is Error.NONE:
            await self._take_response(wanted, response)
        elif code is not Error.NONE:
            session.reset()
            self._later(wanted)
            if not code.retriable:
                self._failure = Refused(code, f"fetch from {address}")

    async def _take_response(self, wanted: Mapping[PartitionName, Wanted], response: FetchResponse) -> None:
        for topic in response.topics:
            for answer in topic.partitions:
                one = PartitionName(topic.name, answer.partition)
                found = self._assigned.get(one)
                if one not in wanted or found is None or found.fetch_at != wanted[one].offset:
                    continue  # a seek, or another assignment, came between
                if answer.error_code:
                    await self._take_error(one, found, answer, response)
                elif answer.records:
                    self._take_records(found, answer)

    def _take_records(self, found: _Assigned, answer: PartitionFetched) -> None:
        aborted = (answer.aborted_transactions or ()) if self._options.reads_committed else None
        data = memoryview(answer.records or b"")
        records: list[Record] = []
        end = found.fetch_at
        try:
            visible = select_visible(data, aborted)
            for at, header in visible.batches:
                records += [one for one in open_batch(data[at : at + header.size]) if one.offset >= found.fetch_at]
                end = header.last_offset + 1
            end = max(end, visible.end)
        except Fault as fault:  # what came before it is still returned, and then the reader stops here
            self._failure = ClientError(f"cannot read the batch after offset {end - 1}: {fault}")
        found.records.extend(records)
        found.fetch_at = end

    async def _take_error(self, one: PartitionName, found: _Assigned, answer: PartitionFetched, response: Any) -> None:
        error = error_of(answer.error_code)
        what = f"read {one.topic}-{one.partition} at offset {found.fetch_at}"
        if error is Error.OFFSET_OUT_OF_RANGE and self._options.reset != "error":
            await self._reset(one, found)
        elif error.retriable or error in MOVED:
            if not self._cluster.map.hint(one, answer.current_leader, response.node_endpoints):
                self._cluster.map.forget_leader(one)
                self._later([one])
        else:
            self._failure = Refused(error, what)

    async def _reset(self, one: PartitionName, found: _Assigned) -> None:
        where = EARLIEST if self._options.reset == "earliest" else LATEST
        committed = self._options.reads_committed
        try:
            offset = (await offsets_at(self._cluster, {one: where}, committed=committed))[one]
        except ClientError as error:
            self._failure = error
        else:
            found.fetch_at = found.next_offset = offset
