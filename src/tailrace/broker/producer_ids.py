"""Producer ids for clients, out of blocks that the metadata log has given to this broker.

A block is taken as a whole before its first id is handed out, so ids never repeat, whatever crashes; what is left of a
block at a restart is lost, which costs nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tailrace.model.ids import BrokerId
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds


class ProducerIds:
    def __init__(self, call_controller: Callable[[object], Awaitable[Any]], broker: BrokerId) -> None:
        self._call_controller = call_controller
        self._broker = broker
        self._block = range(0)
        self._taking = asyncio.Lock()

    async def take(self) -> int:
        async with self._taking:
            if not self._block:
                taken = await self._call_controller(TakeProducerIds(broker_id=self._broker))
                self._block = range(taken.first, taken.first + taken.count)
            first, self._block = self._block[0], self._block[1:]
            return first
