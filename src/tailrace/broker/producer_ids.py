"""Producer ids for clients, out of blocks that the metadata log has given to this broker.

A block is taken as a whole before its first id is handed out, so ids never repeat, whatever crashes; what is left of a
block at a restart is lost, which costs nothing.
"""

import asyncio

from tailrace.broker.coordinator import Coordinator
from tailrace.cluster.controller import Controller
from tailrace.model.ids import BrokerId


class ProducerIds:
    def __init__(self, controller: Coordinator[Controller], broker: BrokerId) -> None:
        self._controller = controller
        self._broker = broker
        self._block = range(0)
        self._taking = asyncio.Lock()

    async def take(self) -> int:
        async with self._taking:
            if not self._block:
                self._block = await self._controller.write(lambda machine: machine.take_producer_ids(self._broker))
            taken, self._block = self._block[0], self._block[1:]
            return taken
