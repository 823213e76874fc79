"""Producer ids for clients, from blocks that the controller allocates to this broker in the metadata log.

A block is allocated as a whole before its first id is handed out, so ids never repeat, whatever crashes; the unused ids
of a block are lost at a restart, which costs nothing. The next block is fetched in advance: a broker that cannot reach
the controller still has ids for its clients.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from tailrace.model.faults import CoordinatorLoading, Fault
from tailrace.model.ids import BrokerId
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds

logger: Final = logging.getLogger(__name__)

REFILL_BELOW: Final = 500  # fetch another block when fewer ids are left


class ProducerIds:
    def __init__(
        self,
        call_controller: Callable[[object], Awaitable[Any]],
        broker: BrokerId,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._call_controller = call_controller
        self._broker = broker
        self._spawn = spawn
        self._block = range(0)
        self._next_block = range(0)
        self._fetching = asyncio.Lock()
        self._attempts = 0
        self._last_fault: Fault | None = None  # why the last attempt failed; None: it succeeded

    @property
    def in_hand(self) -> int:
        return len(self._block) + len(self._next_block)

    async def take(self) -> int:
        """The next id. `CoordinatorLoading` if none is available: clients of every version retry on that error."""
        while not self.in_hand:
            try:
                await self._fetch_block()
            except Fault as fault:
                raise CoordinatorLoading(f"no producer id is available: {fault}") from None
        if not self._block:
            self._block, self._next_block = self._next_block, range(0)
        first, self._block = self._block[0], self._block[1:]
        if self.in_hand < REFILL_BELOW and not self._fetching.locked():
            self._spawn(self.stock_up())
        return first

    async def stock_up(self) -> None:
        """Fetch the next block in advance. If that fails, the next `take` tries again."""
        try:
            await self._fetch_block()
        except Fault as fault:
            logger.warning("fetching a block of producer ids in advance failed: %s", fault)

    async def _fetch_block(self) -> None:
        """Single-flight: waiters share one request to the controller and its result."""
        attempts = self._attempts
        async with self._fetching:
            if attempts == self._attempts and not self._next_block:
                self._attempts += 1
                self._last_fault = await self._request_block()
            if self._last_fault is not None and not self._next_block:
                raise self._last_fault

    async def _request_block(self) -> Fault | None:
        try:
            taken = await self._call_controller(TakeProducerIds(broker_id=self._broker))
        except Fault as fault:
            return fault
        self._next_block = range(taken.first, taken.first + taken.count)
        return None
