"""One partition of `__transaction_state` and its transactions, on the broker that leads it.

A producer often begins its next transaction while the markers of the previous one are still being written. Kafka
answers CONCURRENT_TRANSACTIONS then, and clients retry after 20 ms. Here the request waits for up to `FREE_WITHIN_S`:
the markers usually take a few milliseconds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from tailrace.broker.coordination.partition_coordinator import PartitionCoordinator, Spawn
from tailrace.broker.machines.runtime import Codec
from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import ConcurrentTransactions, Fault
from tailrace.model.ids import Epoch, PartitionName
from tailrace.ports import Ports
from tailrace.transactions.records import decode_entry, encode_entry
from tailrace.transactions.states import Cause
from tailrace.transactions.transactions import Transactions
from tailrace.transactions.turn import Markers, Rules, TransactionTurn

FREE_WITHIN_S: Final = 0.5
NAMES_PER_TURN: Final = 100  # checked for expiry, or rewritten
CODEC: Final = Codec(encode_entry, decode_entry)
T = TypeVar("T")
Send = Callable[["TransactionPartitionCoordinator", Epoch, Markers], None]


class TransactionPartitionCoordinator(PartitionCoordinator[Transactions, TransactionTurn]):
    def __init__(
        self, partition: Partition, rules: Rules, ports: Ports, spawn: Spawn, send: Send, level: Callable[[], int]
    ) -> None:
        super().__init__(partition, Transactions, CODEC, ports, spawn, level)
        self._rules = rules
        self._send = send
        self._waiting: dict[str, asyncio.Event] = {}  # by transactional id, set when its transaction has ended

    def awaits(self, epoch: Epoch, markers: Markers, place: PartitionName) -> bool:
        """Whether a marker is still to be sent. A machine that was rebuilt in the same epoch sends its own."""
        coordinator = self._term.runtime
        is_same = coordinator is not None and coordinator.epoch == epoch
        return is_same and self._serving().machine.awaits(markers, place)

    def needs_id(self, transactional_id: str) -> bool:
        return self._serving().machine.needs_id(transactional_id)

    async def when_free(self, transactional_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work`; if the previous transaction is still ending, again when it has ended, or after a timeout."""
        try:
            return await work()
        except ConcurrentTransactions:
            await self._wait_until_free(transactional_id)
        return await work()

    async def _wait_until_free(self, transactional_id: str) -> None:
        if transactional_id not in self._serving().machine.pending_markers:
            return  # it has ended while the fault waited for the commit
        freed = self._waiting.setdefault(transactional_id, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(FREE_WITHIN_S):
                await freed.wait()

    async def expire(self) -> None:
        """Remove expired transactional ids, some per turn."""
        with suppress(Fault):  # a new leader does the same
            names = await self.ask(lambda machine: list(machine.transactions))
            for at in range(0, len(names), NAMES_PER_TURN):
                await self.act(partial(_expire, names[at : at + NAMES_PER_TURN]))

    def _live_records_max(self, machine: Transactions) -> int:
        return len(machine.transactions)

    async def _rewrite(self) -> bool:
        names = await self.ask(lambda machine: list(machine.transactions))
        for at in range(0, len(names), NAMES_PER_TURN):
            await self.act(partial(_rewrite_some, names[at : at + NAMES_PER_TURN]))
        return True

    def _turn(self, machine: Transactions) -> TransactionTurn:
        clock = self._ports.clock
        return TransactionTurn(now=clock.monotonic(), wall_ms=clock.wall_ms(), rules=self._rules, alarms=machine.alarms)

    def _done(self, turn: TransactionTurn) -> None:
        for markers in turn.markers:
            self._send(self, self._term.partition.epoch, markers)

    def _decide(
        self, machine: Transactions, handler: Callable[[Transactions, TransactionTurn], T], turn: TransactionTurn
    ) -> T:
        """Requests that wait for an end resume as soon as it is appended; their answers wait until it is committed."""
        result = super()._decide(machine, handler, turn)
        for transactional_id, move in turn.moves:
            if move.cause is Cause.MARKED and transactional_id in self._waiting:
                self._waiting.pop(transactional_id).set()
        return result

    def _ends(self) -> None:
        super()._ends()
        for waiting in self._waiting.values():
            waiting.set()
        self._waiting.clear()

    def _failed(self, turn: TransactionTurn, fault: Fault) -> None:
        """The decision may be in the log and be committed later: rebuild the machine, which sends the markers."""
        if turn.markers:
            self._term.start_over()


def _expire(names: Sequence[str], machine: Transactions, turn: TransactionTurn) -> None:
    machine.expire(names, turn)


def _rewrite_some(names: Sequence[str], machine: Transactions, turn: TransactionTurn) -> None:
    machine.rewrite(names, turn)
