"""The coordinator runtime: a pure state machine on one internal partition, while this broker leads it.

A handler reads the machine and returns a proposal: records, and an answer. The runtime appends the records as one
batch, replays them into the machine at once, and returns the answer when the high watermark has passed them. Answers to
reads, and faults, wait as well until everything they may have seen is committed. So no answer is ever undone by a
crash. If the append fails nothing is replayed, so the replayed state stays correct; but a machine may also keep state
that is not in the log, such as waiting members, so it is dropped then (`is_broken`).

Several requests can share a batch (`gather`, `apply`, `append`). Each is decided on the state that the ones before it
left, so records are then replayed before they are appended, and a machine whose append fails must be dropped. All of
that happens in one turn of the loop: nobody else sees a machine that is ahead of its log.

A leader that was replaced without knowing it must not answer: after the wait, an answer is returned only if a majority
is connected and has fetched within the check-quorum time. When leadership is lost the whole runtime is dropped with its
machine; the next leader builds its own by replay.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from tailrace.broker.later_release import unknown_record
from tailrace.broker.machines.gathered_records import Encode, GatheredRecords
from tailrace.broker.partitions.offset_waiters import WhenReached
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.features import record_version
from tailrace.model.faults import Fault, NotLeader
from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch
from tailrace.model.proposal import InTransaction, Proposal, TransactionEnded
from tailrace.ports import Clock
from tailrace.records.control import Marker, read_control
from tailrace.records.header import BatchHeader
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord, Record
from tailrace.wire.stored import UnknownRecord, decode_record, encode_record

LOAD_READ_MAX_BYTES: Final = 1024 * 1024
RECORDS_PER_TURN: Final = 500


class Machine(Protocol):
    def replay(self, record: Any, /) -> None: ...


M = TypeVar("M", bound=Machine)
T = TypeVar("T")


@frozen(kw_only=False)
class Codec:
    """The encoding of a machine's records in its log."""

    encode: Encode
    decode: Callable[[Record], Any]


def codec_of(kinds: Mapping[int, type]) -> Codec:
    """The codec of Tailrace's own record types, by type number; see `wire.stored`."""

    def encode(record: Any, level: int, now_ms: int) -> NewRecord:
        version = record_version(level, type(record).__name__)
        return NewRecord(value=encode_record(record, version), timestamp=now_ms)

    return Codec(encode, lambda stored: decode_record(kinds, stored.value or b""))


class MachineRuntime(Generic[M]):
    def __init__(self, partition: Partition, machine: M, codec: Codec, clock: Clock, level: Callable[[M], int]) -> None:
        """`level` returns the level of metadata.version at which records are written."""
        self.partition = partition
        self.epoch: Epoch = partition.epoch  # it serves in this leader epoch only
        self.machine = machine
        self.is_broken = False  # an append failed: the machine may have state that is not in the log
        self._codec = codec
        self._clock = clock
        self._level = level

    async def load(self) -> None:
        """Replay the log up to its end; the machine can serve after that."""
        log, offset = self.partition.log, self.partition.log.start
        while offset < log.end:
            offset = await replay_batches(self.partition, offset, log.end, self._codec.decode, self.machine.replay)

    async def write(self, handler: Callable[[M], Proposal[T]]) -> T:
        """Run a handler, append the records it proposes, and return its answer when they are committed."""
        gathered = self.gather()
        try:
            proposal = handler(self.machine)
        except Fault:
            await self.settled()
            raise
        if proposal.records:
            gathered.add(proposal.records)
            self.append(gathered)
            self._replay(proposal.records)
        await self.settled()
        return proposal.answer

    # Requests that share a batch

    def gather(self) -> GatheredRecords:
        """Begin with no records; raises `NotLeader` if this broker cannot append."""
        self._require_leadership()
        batch_max_bytes = self.partition.log.settings.max_message_bytes
        return GatheredRecords(self._codec.encode, self._level(self.machine), self._clock.wall_ms(), batch_max_bytes)

    def apply(self, records: Sequence[object], gathered: GatheredRecords) -> None:
        """Add the records of a request, and replay them; `append` must follow in the same turn of the loop."""
        gathered.add(records)
        self._replay(records)

    def append(self, gathered: GatheredRecords) -> None:
        try:
            for batch in gathered.batches():
                self.partition.append_own(batch)
        except BaseException:  # the machine may have replayed what its log does not have
            self.is_broken = True
            raise

    def _replay(self, records: Sequence[object]) -> None:
        for record in records:
            self.machine.replay(record)

    async def read(self, handler: Callable[[M], T]) -> T:
        self._require_leadership()
        try:
            answer = handler(self.machine)
        finally:
            await self.settled()
        return answer

    async def settled(self) -> None:
        """Wait until everything the machine has replayed is committed, and check that this broker still leads."""
        await self.partition.committed()
        self._require_majority()

    def when_settled(self, done: WhenReached) -> None:
        """As `settled`, with a callback: `done(None)`, or `done(fault)`."""
        self.partition.when_committed(partial(self._committed, done))

    def _committed(self, done: WhenReached, fault: Fault | None) -> None:
        if fault is None:
            try:
                self._require_majority()
            except Fault as lost:
                fault = lost.with_traceback(None)
        done(fault)

    def _require_majority(self) -> None:
        self._require_leadership()
        if not self.partition.hears_quorum():
            raise NotLeader(f"{self.partition.name}: this broker has lost contact with the majority")

    def _require_leadership(self) -> None:
        self.partition.require_leader()
        if self.partition.epoch != self.epoch:
            raise NotLeader(f"{self.partition.name}: leader epoch {self.epoch} has ended")


def _records_of(log: str, batch: memoryview, header: BatchHeader, decode: Callable[[Record], Any]) -> Iterator[Any]:
    """The records of a batch as a machine replays them, in order."""
    if header.is_control:
        control = read_control(batch) if header.is_transactional else None
        if isinstance(control, Marker):
            yield TransactionEnded(header.producer_id, control.committed)
        return
    for record in open_batch(batch):
        try:
            one = decode(record)
        except UnknownRecord as error:
            raise unknown_record(log, record.offset, error) from None
        yield InTransaction(header.producer_id, header.producer_epoch, one) if header.is_transactional else one


async def replay_batches(
    partition: Partition, offset: int, limit: int, decode: Callable[[Record], Any], replay: Callable[[Any], None]
) -> int:
    """Replay one read's worth of records from `offset`, below `limit`; returns the next offset. `LaterRelease` if a
    record's type is unknown."""
    log = partition.log
    read = log.read(offset, LOAD_READ_MAX_BYTES, limit)
    if read is None:
        read = await log.read_cold(offset, LOAD_READ_MAX_BYTES, limit)
    count = 0
    for batch, header in batches(read.data):
        for record in _records_of(partition.name, batch, header, decode):
            replay(record)
            count += 1
            if count % RECORDS_PER_TURN == 0:
                await asyncio.sleep(0)  # neither a long log nor a large batch may block the loop
    await asyncio.sleep(0)
    return read.next_offset
