"""Writing records: append batches to partitions that this broker leads.

`Writer.partition` finds one partition; its `append` is synchronous, and either appends the batch or raises a fault and
appends nothing. A `Write` is a request with several batches: they are appended one after the other, each with its own
outcome, in several time slices if that takes long. With acks=all an outcome is final when the high watermark has passed
the batch (`Acknowledgements`), or when the request's timeout is over.

The first batch of a transaction on a partition is verified with the transaction coordinator (KIP-890,
`transactions.verification`). Such a write waits for the answer, with a copy of its batches.

So does a write with a batch in another codec than its topic stores: the batch is compressed anew in a thread. Then it
is appended as if it had come only now: a leader change, a marker or new settings meanwhile need no rules of their own.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final, Protocol

from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.broker.partitions.offset_waiters import WhenReached
from tailrace.broker.partitions.partition import ACKS_ALL, Partition
from tailrace.broker.partitions.transaction_guards import Guard, Verifier
from tailrace.broker.services.time_slices import MANY_AT_ONCE, TimeSlice
from tailrace.broker.transactions.verification import Verification
from tailrace.log.admission import NeedsRecompression, StoredCodec
from tailrace.log.log import Appended
from tailrace.model.caller import Caller
from tailrace.model.faults import (
    Fault,
    InvalidAcks,
    InvalidBatch,
    InvalidTopicName,
    OffsetOutOfRange,
    StorageFailed,
    TimedOut,
)
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.limits import BATCH_HEADER_BYTES, NAMES_PER_TURN_MAX, RECOMPRESSIONS_AT_ONCE_MAX
from tailrace.ports import Offload
from tailrace.records.header import read_header
from tailrace.records.recompress import Recompressed
from tailrace.wire.messages.peers.move_start import MoveStart

__all__ = [
    "ACKS_ALL",
    "Acknowledgements",
    "Appended",
    "Batch",
    "NeedsRecompression",
    "Outcome",
    "WritablePartition",
    "Write",
    "Writer",
]

Batch = tuple[str | Id, int, memoryview | None]  # topic, partition, bytes
Outcome = Appended | Fault
Guards = Mapping[tuple[str | Id, int], Guard]
NO_GUARDS: Final[Guards] = MappingProxyType({})


class WritablePartition(Protocol):
    """A partition as returned by `Writer.partition`."""

    @property
    def opens_records(self) -> bool:
        """Whether appending decodes every record of a batch, which takes long: the topic's settings require it."""

    def append(self, batch: memoryview, acks: int) -> Appended:
        """`NeedsRecompression` if the batch has another codec than the topic stores: use a `Write`."""

    @property
    def acknowledged(self) -> int:
        """Batches below this offset are acknowledged with acks=all."""

    def when_acknowledged(self, end: int, done: WhenReached) -> None: ...


class Recompression:
    """Compresses batches anew in threads, a few at once."""

    def __init__(self, offload: Offload) -> None:
        self._offload = offload
        self._running = asyncio.Semaphore(RECOMPRESSIONS_AT_ONCE_MAX)

    async def run(self, batch: memoryview, codec: StoredCodec) -> Recompressed:
        async with self._running:
            return await self._offload.thread(codec.recompression(batch))


class Writer:
    def __init__(
        self,
        hosted: HostedPartitions,
        verifier: Verifier,
        calls: ControllerCalls,
        progress: MetadataProgress,
        offload: Offload,
    ) -> None:
        self._hosted = hosted
        self._calls = calls
        self._progress = progress
        self._recompression = Recompression(offload)
        self.verifier = verifier  # sends verification requests to transaction coordinators

    def partition(self, who: Caller, topic: str | Id, number: int) -> WritablePartition:
        """A partition hosted on this broker; otherwise raises `NotLeader`, which names the leader."""
        return self._hosted.find(topic, number)

    def write(self, who: Caller, batches: Iterable[Batch], acks: int, time_slice: TimeSlice) -> "Write":
        return Write(self._hosted, self._recompression, batches, acks, time_slice)

    def write_in_transaction(
        self,
        who: Caller,
        transactional_id: str,
        batches: Iterable[Batch],
        acks: int,
        time_slice: TimeSlice,
        *,
        adds: bool,
        knows_abortable: bool,
    ) -> "Write":
        """`adds`: the first batch adds its partition to the transaction (transactions v2).
        `knows_abortable`: the client understands TRANSACTION_ABORTABLE."""
        batches = list(batches)
        verification = Verification(transactional_id, adds=adds, knows_abortable=knows_abortable)
        guards = self._guards(batches, verification)
        return TransactionalWrite(
            self._hosted, self._recompression, batches, acks, time_slice, guards, verification, self.verifier
        )

    def _guards(self, batches: Iterable[Batch], verification: Verification) -> Guards:
        """A guard for every transactional batch to a partition hosted here; other batches are refused when appended."""
        guards: dict[tuple[str | Id, int], Guard] = {}
        for topic, number, records in batches:
            if records is None or len(records) < BATCH_HEADER_BYTES or (topic, number) in guards:
                continue
            header = read_header(records)
            if header.is_transactional:
                with suppress(Fault):
                    partition = self._hosted.find(topic, number)
                    if not partition.is_internal:  # the append is refused: do not add the partition to the transaction
                        guards[topic, number] = verification.guard(partition, header)
        return guards

    # Deleting

    async def delete_records(
        self, who: Caller, wanted: Sequence[tuple[str, int, int | None]], within_s: float
    ) -> list[int | Fault]:
        """Delete the records of partitions below an offset; None: below the high watermark. Returns each partition's
        new log start offset, or its fault. The new start is committed in the metadata log, so that a new leader cannot
        bring deleted records back."""
        decided: list[Partition | Fault] = []
        for first in range(0, len(wanted), NAMES_PER_TURN_MAX):
            some = wanted[first : first + NAMES_PER_TURN_MAX]
            decided += await asyncio.gather(*(self._delete_below(*one, within_s) for one in some))
        await self._hosted.settle()
        return [one if isinstance(one, Fault) else _first_offset(one) for one in decided]

    async def _delete_below(self, topic: str, number: int, offset: int | None, within_s: float) -> Partition | Fault:
        try:
            partition = self._hosted.find(topic, number)
            start = _new_start(partition, offset)
            if start > partition.log.start:
                request = MoveStart(topic_id=partition.key.topic_id, partition=number, start=start)
                async with asyncio.timeout(within_s):
                    await self._calls.ask(request, within_s)
                    await self._progress.until(partial(self._has_start, partition.key, start))
        except Fault as fault:
            return fault
        except TimeoutError:
            return TimedOut(f"{topic}-{number}: the new log start offset did not reach this broker in time")
        return partition

    def _has_start(self, key: TopicPartition, start: int) -> bool:
        """Whether this broker's metadata has the partition's new start, or no longer has its topic."""
        topics = self._hosted.image.topics_by_id
        return key.topic_id not in topics or topics[key.topic_id].partitions[key.partition].start >= start


class Write:
    """The batches of one request. `outcomes` has one entry per batch that was appended or refused, in order."""

    __slots__ = (
        "_acknowledgements",
        "_acks",
        "_body",
        "_codec",
        "_guards",
        "_hosted",
        "_is_slow",
        "_left",
        "_recompression",
        "_slice",
        "outcomes",
    )

    def __init__(
        self,
        hosted: HostedPartitions,
        recompression: Recompression,
        batches: Iterable[Batch],
        acks: int,
        time_slice: TimeSlice,
        guards: Guards = NO_GUARDS,
    ) -> None:
        self._hosted = hosted
        self._recompression = recompression
        self._codec: StoredCodec | None = None  # that the first remaining batch needs
        self._body: bytes | None = None  # the decompressed records of the first remaining batch, if known
        self._acks = acks
        self._guards = guards
        self._slice = time_slice
        self._left = deque(batches)
        self._acknowledgements: Acknowledgements | None = None
        self._is_slow = len(self._left) > MANY_AT_ONCE  # may take longer than a time slice
        self.outcomes: list[Outcome] = []

    def append_some(self) -> bool:
        """Append the remaining batches, up to one that needs another codec, or as many as one time slice allows;
        whether all are done."""
        left = self._left
        while left:
            self._take(*left.popleft())
            if self._is_slow and left and (self._codec is not None or self._slice.is_over):
                return False
        self._slice.is_slow = self._slice.is_slow or self._is_slow
        return True

    def copy_batches(self) -> None:
        """Copy the remaining batches: the receive buffer is reused when its callback returns."""
        self._left = deque((topic, number, _copied(records)) for topic, number, records in self._left)

    async def to_its_end(self) -> None:
        """Append all remaining batches, in as many time slices as needed."""
        while not self.append_some():
            await self._next()

    async def _next(self) -> None:
        """Recompress the first remaining batch if it needs that, and wait for the next time slice."""
        codec, self._codec = self._codec, None
        if codec is not None:
            topic, number, records = self._left.popleft()
            assert records is not None
            try:
                batch, self._body = await self._recompression.run(records, codec)
                self._left.appendleft((topic, number, memoryview(batch)))
            except Fault as fault:
                self.outcomes.append(fault)
        await self._slice.next()

    def finish(self, timeout_ms: int, done: Callable[[], None]) -> bool:
        """Whether every outcome is final. If not, `done` is called when it is, after `timeout_ms` at the latest."""
        if self._acknowledgements is None:
            return True
        self._acknowledgements.begin(timeout_ms, done)
        return False

    def _take(self, topic: str | Id, number: int, records: memoryview | None) -> None:
        body, self._body = self._body, None
        try:
            if not -1 <= self._acks <= 1:
                raise InvalidAcks(f"acks={self._acks} is not valid; it must be 0, 1 or -1 (all)")
            partition = self._hosted.find(topic, number)
            if not records:
                raise InvalidBatch("the request has no record batch for the partition")
            self._is_slow = self._is_slow or partition.opens_records
            guard = self._guards.get((topic, number)) if self._guards else None
            appended = partition.append(records, self._acks, guard, body)
        except NeedsRecompression as needs:
            self._is_slow = True
            self._codec = needs.codec
            self._left.appendleft((topic, number, records))
            return
        except Fault as fault:
            self._is_slow = True  # the batch may have been opened, to name the rejected records
            self.outcomes.append(fault)
            return
        self.outcomes.append(appended)
        if self._acks == ACKS_ALL and partition.acknowledged <= appended.last_offset:
            if self._acknowledgements is None:
                self._acknowledgements = Acknowledgements(self.outcomes)
            self._acknowledgements.add(len(self.outcomes) - 1, partition, appended.last_offset + 1)


class TransactionalWrite(Write):
    """A write in a transaction: the transaction coordinator may have to verify it before the first append."""

    __slots__ = ("_verification", "_verifier")

    def __init__(
        self,
        hosted: HostedPartitions,
        recompression: Recompression,
        batches: Iterable[Batch],
        acks: int,
        time_slice: TimeSlice,
        guards: Guards,
        verification: Verification,
        verifier: Verifier,
    ) -> None:
        super().__init__(hosted, recompression, batches, acks, time_slice, guards)
        self._verification = verification
        self._verifier = verifier

    def append_some(self) -> bool:
        is_done = True
        try:
            is_done = not self._verification.is_needed and super().append_some()
        finally:
            if is_done:
                self._verification.done()
        return is_done

    async def to_its_end(self) -> None:
        try:
            if self._verification.is_needed:
                await self._verification.ask(self._verifier)
            while not super().append_some():
                await self._next()
        finally:
            self._verification.done()


class Acknowledgements:
    """Outcomes of appended batches that are not committed yet: each becomes final, or is replaced by a fault."""

    __slots__ = ("_done", "_open", "_outcomes", "_timer")

    def __init__(self, outcomes: list[Outcome]) -> None:
        self._outcomes = outcomes
        self._open: dict[int, None] = {}  # indexes of the outcomes that are not final
        self._done: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, index: int, partition: WritablePartition, end: int) -> None:
        """The outcome at `index` is final when `partition` has acknowledged all records below `end`."""
        self._open[index] = None
        partition.when_acknowledged(end, partial(self._decided, index))

    def begin(self, timeout_ms: int, done: Callable[[], None]) -> None:
        """All outcomes are added: call `done` when they are final, after `timeout_ms` at the latest."""
        self._done = done
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, self._timed_out)
        if not self._open:
            self._finish()

    def _decided(self, index: int, fault: Fault | None) -> None:
        if self._open.pop(index, self) is self:
            return  # it has timed out
        if fault is not None:
            self._outcomes[index] = fault
        if not self._open and self._timer is not None:
            self._finish()

    def _timed_out(self) -> None:
        fault = TimedOut("the batch was appended, but not committed within the request's timeout")
        for index in self._open:
            self._outcomes[index] = fault
        self._open.clear()
        self._finish()

    def _finish(self) -> None:
        assert self._timer is not None
        assert self._done is not None
        self._timer.cancel()
        self._done()


def _copied(records: memoryview | None) -> memoryview | None:
    return None if records is None else memoryview(bytearray(records))


def _new_start(partition: Partition, offset: int | None) -> int:
    if partition.is_internal:
        raise InvalidTopicName(f"records of {partition.name} cannot be deleted: it is an internal topic")
    partition.require_leader()
    limit = partition.high_watermark
    start = limit if offset is None else offset
    if not 0 <= start <= limit:
        raise OffsetOutOfRange(f"{partition.name}: offset {start} is not between 0 and the high watermark {limit}")
    return start


def _first_offset(partition: Partition) -> int | Fault:
    if partition.log.refusal is not None:  # the new start is committed; this replica applies it later
        return StorageFailed(f"{partition.name} is {partition.log.refusal}")
    return partition.log.start
