"""A state machine on one partition for as long as this broker leads it: built by replay, dropped with leadership.

`runtime` is set while it serves; it is None until the log is replayed, and after leadership is lost.
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

RETRY_S: Final = 0.5


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
        self._level = level  # the level of metadata.version at which records are written
        self._begins = begins  # called, until it succeeds, once the machine serves
        self._ends = ends  # called when it stops serving
        self._loading: Epoch | None = None

    def leader_changed(self) -> None:
        leads, epoch = self.partition.leads, self.partition.epoch
        if self.runtime is not None and (not leads or self.runtime.epoch != epoch):
            self._drop()
        if leads and self.runtime is None and self._loading != epoch:
            self._loading = epoch
            self._spawn(self._take_over(epoch))

    def start_over(self) -> None:
        """The machine may differ from the log: build it again by replay."""
        if self.runtime is not None:
            self._drop()
        asyncio.get_running_loop().call_later(RETRY_S, self.leader_changed)

    def _drop(self) -> None:
        self.runtime = None
        self._ends()

    async def _take_over(self, epoch: Epoch) -> None:
        runtime = MachineRuntime(self.partition, self._build(), self._codec, self._clock, self._level)
        try:
            await runtime.load()
            if self.partition.leads and self.partition.epoch == epoch:
                self.runtime = runtime
        except Fault as fault:
            logger.warning(
                "%s: cannot load the coordinator in epoch %d, retrying: %s", self.partition.name, epoch, fault
            )
            asyncio.get_running_loop().call_later(RETRY_S, self.leader_changed)
        except WireError as error:
            logger.critical("%s: unreadable record, the coordinator stays unavailable: %s", self.partition.name, error)
        finally:
            if self._loading == epoch:
                self._loading = None
        await self._begin(runtime)

    async def _begin(self, runtime: MachineRuntime[M]) -> None:
        """The machine serves already; its first write is retried until it is committed."""
        while self.runtime is runtime:
            try:
                await self._begins(runtime)
                return
            except Fault as fault:
                logger.info("%s: first write as coordinator failed, retrying: %s", self.partition.name, fault)
                await asyncio.sleep(RETRY_S)
