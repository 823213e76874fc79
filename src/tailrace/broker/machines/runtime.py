"""The coordinator runtime: a pure machine over one partition of our own, while this broker leads it.

A handler looks at the machine and returns a proposal: records, and an answer. The runtime appends the records as one
batch, replays them into the machine at once, and gives the answer when the high watermark has passed them; answers to
reads, and refusals, wait for what they may have seen, too. So nobody is told anything that a crash could take back.
An append that fails leaves what is replayed as it was: that happens only once records are in the log. A machine that
keeps more than that, such as who waits for whom, is dropped then (`is_broken`).

A leader that was replaced without knowing it must not answer: an answer is given only while a majority is connected,
and has fetched within the check-quorum time, and that is looked at after the wait. When leadership is lost the whole
coordinator is dropped with its machine; the next one is built by replay.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from tailrace.broker.later_release import unknown_record
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.features import record_version
from tailrace.model.faults import Fault, NotLeader
from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch
from tailrace.model.proposal import InTransaction, Proposal, TransactionEnded
from tailrace.ports import Clock
from tailrace.records.build import build_batch
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
    """How a machine's records stand in its log."""

    encode: Callable[[Any, int, int], NewRecord]  # a record, at a level of metadata.version, at a time
    decode: Callable[[Record], Any]


def codec_of(kinds: Mapping[int, type]) -> Codec:
    """Records of our own, by their type numbers; see `wire.stored`."""

    def encode(record: Any, level: int, now_ms: int) -> NewRecord:
        version = record_version(level, type(record).__name__)
        return NewRecord(value=encode_record(record, version), timestamp=now_ms)

    return Codec(encode, lambda stored: decode_record(kinds, stored.value or b""))


class MachineRuntime(Generic[M]):
    def __init__(self, partition: Partition, machine: M, codec: Codec, clock: Clock, level: Callable[[M], int]) -> None:
        """`level` tells the level of metadata.version at which records are written."""
        self.partition = partition
        self.epoch: Epoch = partition.epoch  # the only one it serves in
        self.machine = machine
        self.is_broken = False  # an append failed after the machine had decided: it may know what the log does not
        self._codec = codec
        self._clock = clock
        self._level = level

    async def load(self) -> None:
        """Replay the log up to its end; the machine serves from then on."""
        log, offset = self.partition.log, self.partition.log.start
        while offset < log.end:
            offset = await replay_batches(self.partition, offset, log.end, self._codec.decode, self.machine.replay)

    async def write(self, handler: Callable[[M], Proposal[T]]) -> T:
        """Let the machine decide, append what it proposes, answer when that is committed. Faults come out as raised."""
        self._require_leadership()
        try:
            proposal = handler(self.machine)
        except Fault:
            await self.settled()
            raise
        if proposal.records:
            self._append(proposal.records)
        await self.settled()
        return proposal.answer

    def _append(self, records: Sequence[object]) -> None:
        try:
            self.partition.append_own(self._batch(records, self._clock.wall_ms()))
        except Fault:
            self.is_broken = True
            raise
        for record in records:
            self.machine.replay(record)

    def _batch(self, records: Sequence[Any], now_ms: int) -> bytearray:
        first, level = records[0], self._level(self.machine)
        if not isinstance(first, InTransaction):
            return build_batch([self._codec.encode(record, level, now_ms) for record in records])
        return build_batch(
            [self._codec.encode(one.record, level, now_ms) for one in records],
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            transactional=True,
        )

    async def read(self, handler: Callable[[M], T]) -> T:
        self._require_leadership()
        try:
            answer = handler(self.machine)
        finally:
            await self.settled()
        return answer

    async def settled(self) -> None:
        """Wait until all that the machine has seen is committed, and this broker is known to lead still."""
        await self.partition.committed()
        self._require_leadership()
        if not self.partition.hears_quorum():
            raise NotLeader(f"{self.partition.name}: this broker does not hear from a majority")

    def _require_leadership(self) -> None:
        self.partition.require_leader()
        if self.partition.epoch != self.epoch:
            raise NotLeader(f"{self.partition.name}: epoch {self.epoch} is over")


def _said(log: str, batch: memoryview, header: BatchHeader, decode: Callable[[Record], Any]) -> Iterator[Any]:
    """What a batch of a log says to a machine, in its order."""
    if header.is_control:
        said = read_control(batch) if header.is_transactional else None
        if isinstance(said, Marker):
            yield TransactionEnded(header.producer_id, said.committed)
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
    """Hand on some records from `offset` on, below `limit`; where to go on. `LaterRelease` at one that is not known."""
    log = partition.log
    read = log.read(offset, LOAD_READ_MAX_BYTES, limit)
    if read is None:
        read = await log.read_cold(offset, LOAD_READ_MAX_BYTES, limit)
    count = 0
    for batch, header in batches(read.data):
        for record in _said(partition.name, batch, header, decode):
            replay(record)
            count += 1
            if count % RECORDS_PER_TURN == 0:
                await asyncio.sleep(0)  # a long log must not stall the loop, nor a batch about thousands
    await asyncio.sleep(0)
    return read.next_offset
