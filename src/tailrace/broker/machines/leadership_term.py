"""A machine over one partition for as long as this broker leads it: built by replay, dropped with leadership.

`coordinator` is there while it serves. Until the log is read, and after leadership is lost, there is none.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Generic

from tailrace.broker.machines.runtime import Codec, M, MachineRuntime
from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import Fault
from tailrace.model.ids import Epoch
from tailrace.ports import Clock
from tailrace.wire.primitives import WireError

logger: Final = logging.getLogger(__name__)

AGAIN_S: Final = 0.5


class LeadershipTerm(Generic[M]):
    def __init__(
        self,
        partition: Partition,
        build: Callable[[], M],
        codec: Codec,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        *,
        level: Callable[[M], int],
        begins: Callable[[MachineRuntime[M]], Awaitable[None]],
        ends: Callable[[], None],
    ) -> None:
        self.partition = partition
        self.runtime: MachineRuntime[M] | None = None  # while it serves
        self._build = build
        self._codec = codec
        self._clock = clock
        self._spawn = spawn
        self._level = level  # of metadata.version, at which its records are written
        self._begins = begins  # called when it serves
        self._ends = ends  # called when it does not any more
        self._loading: Epoch | None = None

    def leader_changed(self) -> None:
        leads, epoch = self.partition.leads, self.partition.epoch
        if self.runtime is not None and (not leads or self.runtime.epoch != epoch):
            self._drop()
        if leads and self.runtime is None and self._loading != epoch:
            self._loading = epoch
            self._spawn(self._take_over(epoch))

    def start_over(self) -> None:
        """What was built may not be what the log says: build it again."""
        if self.runtime is not None:
            self._drop()
        asyncio.get_running_loop().call_later(AGAIN_S, self.leader_changed)

    def _drop(self) -> None:
        self.runtime = None
        self._ends()

    async def _take_over(self, epoch: Epoch) -> None:
        coordinator = MachineRuntime(self.partition, self._build(), self._codec, self._clock, self._level)
        try:
            await coordinator.load()
            if self.partition.leads and self.partition.epoch == epoch:
                self.runtime = coordinator
        except Fault as fault:
            logger.warning(
                "%s: cannot load the coordinator in epoch %d, retrying: %s", self.partition.name, epoch, fault
            )
            asyncio.get_running_loop().call_later(AGAIN_S, self.leader_changed)
        except WireError as error:
            logger.critical("%s: unreadable record, the coordinator stays unavailable: %s", self.partition.name, error)
        finally:
            if self._loading == epoch:
                self._loading = None
        await self._begin(coordinator)

    async def _begin(self, coordinator: MachineRuntime[M]) -> None:
        """It serves by now; what it does first is done again until it is committed."""
        while self.runtime is coordinator:
            try:
                await self._begins(coordinator)
                return
            except Fault as fault:
                logger.info("%s: first write as coordinator failed, retrying: %s", self.partition.name, fault)
                await asyncio.sleep(AGAIN_S)
