"""One partition of `__share_group_state` and the share partitions it has the state of, on the broker that leads it."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from tailrace.broker.coordination.partition_coordinator import PartitionCoordinator, Spawn
from tailrace.broker.machines.runtime import Codec, MachineRuntime
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.queues.state_requests import StateCall
from tailrace.model.ids import Id
from tailrace.ports import Ports
from tailrace.queues.records import decode_entry, encode_entry
from tailrace.queues.share_states import ShareTurn, StoredShares
from tailrace.queues.state import ShareKey, ShareState

CODEC: Final = Codec(encode_entry, decode_entry)
KEYS_PER_TURN: Final = 100  # rewritten
BATCHES_PER_TURN: Final = 10_000  # rewritten; one share partition may have more

Result = tuple[ShareState | None, Exception | None]


class ShareStatePartitionCoordinator(PartitionCoordinator[StoredShares, ShareTurn]):
    def __init__(
        self,
        partition: Partition,
        ports: Ports,
        spawn: Spawn,
        level: Callable[[], int],
        deleted_topics: Callable[[], Iterable[Id]],
    ) -> None:
        super().__init__(partition, StoredShares, CODEC, ports, spawn, level)
        self._deleted_topics = deleted_topics

    def call(self, call: StateCall) -> "asyncio.Future[Result]":
        """Carry a call out, in one batch with all others of this turn of the loop. The future has its result, or its
        fault, once that is committed. Raises the fault if the machine does not serve."""
        answered: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.act_soon(call.carry_out, partial(_answer, answered))
        return answered

    async def delete_topics(self, topic_ids: Iterable[Id]) -> None:
        await self.act(lambda machine, turn: machine.delete_topics(topic_ids, turn))

    # Inside

    async def _begins(self, coordinator: MachineRuntime[StoredShares]) -> None:
        await super()._begins(coordinator)
        await self.delete_topics(self._deleted_topics())

    def _live_records_max(self, machine: StoredShares) -> int:
        return len(machine.states)

    async def _rewrite(self) -> bool:
        sizes = await self.ask(lambda machine: [(key, len(one.batches)) for key, one in machine.states.items()])
        for keys in _portions(sizes):
            await self.act(partial(_rewrite_some, keys))
        return True

    def _turn(self, machine: StoredShares) -> ShareTurn:
        return ShareTurn(wall_ms=self._ports.clock.wall_ms())


def _answer(answered: "asyncio.Future[Result]", result: ShareState | None, fault: Exception | None) -> None:
    if not answered.done():
        answered.set_result((result, fault))


def _portions(sizes: Sequence[tuple[ShareKey, int]]) -> Iterator[list[ShareKey]]:
    """Keys for one turn each, by the number of their batches: a turn's records are one batch of the log."""
    keys: list[ShareKey] = []
    batches = 0
    for key, size in sizes:
        if keys and (len(keys) == KEYS_PER_TURN or batches + size > BATCHES_PER_TURN):
            yield keys
            keys, batches = [], 0
        keys.append(key)
        batches += size
    if keys:
        yield keys


def _rewrite_some(keys: Sequence[ShareKey], machine: StoredShares, turn: ShareTurn) -> None:
    machine.rewrite(keys, turn)
