"""Brokers that die, and come back: killed, without power, all without power, stopped as one should, in mid-write."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final

from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.faults.budget import Budget
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import Delay

OPERATIONS_MAX: Final = 30  # a crash comes before one of so many writes or changes of names
STUCK_SYNC: Final = Delay(low_seconds=0.3, high_seconds=0.8)

Beside = Callable[[Coroutine[Any, Any, None]], object]


class Crashes:
    def __init__(
        self, rng: random.Random, servers: Sequence[Server], budget: Budget, coverage: Coverage, beside: Beside
    ) -> None:
        self._rng = rng
        self._servers = servers
        self._budget = budget
        self._coverage = coverage
        self._beside = beside

    def any(self) -> Server | None:
        running = [server for server in self._servers if server.runs]
        return self._rng.choice(running) if running else None

    async def kill(self) -> None:
        """The kernel ends it, and resets its connections; what was written stays, synced or not."""
        if (server := self.any()) is not None:
            server.crash(power_loss=False)
            self._coverage.kills += 1
            await self._return(server)

    async def lose_power(self) -> None:
        """Mostly while much is written and little is synced: that is what tears tails."""
        if (server := self.any()) is None or not self._budget.may_lose_power:
            return
        process = server.machine.process
        await self._hold_up_syncs([server])
        if server.machine.process is process and self._budget.may_lose_power:
            server.crash(power_loss=True)
            self._coverage.power_losses += 1
            await self._return(server)

    async def crash_in_mid_write(self) -> None:
        """Not between two events, but before one of the next writes."""
        power_loss = self._rng.random() < 0.7 and self._budget.may_black_out
        if (server := self.any()) is None:
            return
        process = server.machine.process
        server.crash_at_operation(self._rng.randrange(1, OPERATIONS_MAX), power_loss=power_loss)
        await asyncio.sleep(self._rng.uniform(0.2, 1.0))
        if server.machine.process is process:
            return  # it had nothing to write
        self._coverage.power_losses += power_loss
        self._coverage.kills += not power_loss
        await self._return(server)

    async def black_out(self) -> None:
        """All at once; they come back one by one."""
        if not self._budget.may_black_out:
            return
        self._coverage.blackouts += 1
        await self._hold_up_syncs(self._servers)
        running = [server for server in self._servers if server.runs]
        for server in running:
            server.crash(power_loss=True)
        for server in running:
            await self._return(server)

    async def stop(self) -> None:
        """As an operator does; nothing that is healed meanwhile takes that back."""
        if (server := self.any()) is not None and not server.paused:
            self._beside(self._stop(server))

    async def _stop(self, server: Server) -> None:
        if await server.stop():
            self._coverage.clean_stops += 1
            await self._return(server)

    async def _hold_up_syncs(self, servers: Sequence[Server]) -> None:
        """For a moment, mostly."""
        if self._rng.random() < 0.1:
            return
        storages = [server.machine.storage for server in servers]
        before = [storage.odds for storage in storages]
        for storage in storages:
            storage.odds = replace(storage.odds, sync=STUCK_SYNC)
        await asyncio.sleep(self._rng.uniform(0.05, 0.4))
        for storage, odds in zip(storages, before, strict=True):
            storage.odds = odds

    async def _return(self, server: Server) -> None:
        await asyncio.sleep(self._rng.choice([0.0, 0.1, 0.5, 2.0]) * self._rng.random())
        if not server.runs:
            self._beside(server.start())
