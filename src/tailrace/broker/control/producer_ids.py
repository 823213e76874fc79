"""Producer ids for clients, out of blocks that the metadata log has given to this broker.

A block is taken as a whole before its first id is handed out, so ids never repeat, whatever crashes; what is left of a
block at a restart is lost, which costs nothing. One is kept in hand: a broker that the controller cannot be reached
from still has ids for the clients that ask it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from tailrace.model.faults import CoordinatorLoading, Fault
from tailrace.model.ids import BrokerId
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds

logger: Final = logging.getLogger(__name__)

FEW: Final = 500  # so many left: time for another block


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
        self._taking = asyncio.Lock()
        self._tries = 0
        self._refusal: Fault | None = None  # what came of the last try

    @property
    def in_hand(self) -> int:
        return len(self._block) + len(self._next_block)

    async def take(self) -> int:
        """`CoordinatorLoading` where none can be had now: what clients take for a reason to ask again."""
        while not self.in_hand:
            try:
                await self._take_block()
            except Fault as fault:
                raise CoordinatorLoading(f"no producer id can be had: {fault}") from None
        if not self._block:
            self._block, self._next_block = self._next_block, range(0)
        first, self._block = self._block[0], self._block[1:]
        if self.in_hand < FEW and not self._taking.locked():
            self._spawn(self.stock_up())
        return first

    async def stock_up(self) -> None:
        """Have a block in hand; where there is none to be had, whoever comes next tries again."""
        try:
            await self._take_block()
        except Fault as fault:
            logger.warning("no producer ids could be had in advance: %s", fault)

    async def _take_block(self) -> None:
        """One asks for all who wait meanwhile, and what it is told holds for them, too."""
        tries = self._tries
        async with self._taking:
            if tries == self._tries and not self._next_block:
                self._tries += 1
                self._refusal = await self._try_for_block()
            if self._refusal is not None and not self._next_block:
                raise self._refusal

    async def _try_for_block(self) -> Fault | None:
        try:
            taken = await self._call_controller(TakeProducerIds(broker_id=self._broker))
        except Fault as fault:
            return fault
        self._next_block = range(taken.first, taken.first + taken.count)
        return None
