"""The coordinator runtime: a pure machine over one partition of our own.

A handler looks at the machine and returns a proposal: records, and an answer. The runtime appends the records as one
batch, replays them into the machine at once, and gives the answer when the high watermark has passed them; answers to
reads, and refusals, wait for what they may have seen, too. So nobody is told anything that a crash could take back.
An append that fails leaves the machine as it was: records are replayed only once they are in the log.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from tailrace.broker.partition import Partition
from tailrace.model.faults import Fault
from tailrace.model.proposal import Proposal
from tailrace.ports import Clock
from tailrace.records.build import build_batch
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord
from tailrace.wire.stored import decode_record, encode_record

load_read_max_bytes: Final = 1024 * 1024


class Machine(Protocol):
    def replay(self, record: Any, /) -> None: ...


M = TypeVar("M", bound=Machine)
T = TypeVar("T")

Committed = Callable[[Sequence[object]], None]


class Coordinator(Generic[M]):
    def __init__(
        self, partition: Partition, machine: M, kinds: Mapping[int, type], clock: Clock, on_committed: Committed
    ) -> None:
        self.partition = partition
        self._machine = machine
        self._kinds = kinds  # record classes by their type number
        self._clock = clock
        self._on_committed = on_committed  # sees every record, in order, once it is committed

    async def load(self) -> None:
        """Replay the log up to its end; the machine serves from then on."""
        log, offset = self.partition.log, self.partition.log.start
        while offset < log.end:
            read = log.read(offset, load_read_max_bytes, log.end)
            if read is None:
                read = await log.read_cold(offset, load_read_max_bytes, log.end)
            for batch, header in batches(read.data):
                if not header.is_control:
                    self._replay(
                        [decode_record(self._kinds, record.value or b"") for record in open_batch(batch)],
                        header.last_offset + 1,
                    )
            offset = read.next_offset
            await asyncio.sleep(0)  # a long log must not stall the loop

    async def write(self, handler: Callable[[M], Proposal[T]]) -> T:
        """Let the machine decide, append what it proposes, answer when that is committed. Faults come out as raised."""
        try:
            proposal = handler(self._machine)
        except Fault:
            await self.settled()
            raise
        if proposal.records:
            now_ms = self._clock.wall_ms()
            rows = [NewRecord(value=encode_record(record), timestamp=now_ms) for record in proposal.records]
            appended = self.partition.append_own(build_batch(rows))
            self._replay(proposal.records, appended.last_offset + 1)
        await self.settled()
        return proposal.answer

    async def read(self, handler: Callable[[M], T]) -> T:
        answer = handler(self._machine)
        await self.settled()
        return answer

    async def settled(self) -> None:
        """Wait until all that the machine has seen is committed."""
        await self.partition.committed()

    def _replay(self, records: Sequence[object], end: int) -> None:
        for record in records:
            self._machine.replay(record)
        self.partition.when_committed(end, partial(self._committed, records))

    def _committed(self, records: Sequence[object], fault: Fault | None) -> None:
        if fault is None:
            self._on_committed(records)
