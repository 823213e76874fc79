"""Crashes and stops of brokers, each followed by a restart: kill -9, power loss of one or of all machines, SIGTERM."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final

from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.faults.budget import Budget
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import Delay

OPERATIONS_MAX: Final = 30  # a crash between writes comes before one of the next 30 disk operations
STUCK_SYNC: Final = Delay(low_seconds=0.3, high_seconds=0.8)

InBackground = Callable[[Coroutine[Any, Any, None]], object]


class Crashes:
    def __init__(
        self,
        rng: random.Random,
        servers: Sequence[Server],
        budget: Budget,
        coverage: Coverage,
        in_background: InBackground,
    ) -> None:
        self._rng = rng
        self._servers = servers
        self._budget = budget
        self._coverage = coverage
        self._in_background = in_background

    def _any_running(self) -> Server | None:
        running = [server for server in self._servers if server.runs]
        return self._rng.choice(running) if running else None

    async def kill(self) -> None:
        """Kill a broker: its connections are reset, and all that it wrote stays, synced or not."""
        if (server := self._any_running()) is not None:
            server.crash(power_loss=False)
            self._coverage.kills += 1
            await self._restart(server)

    async def lose_power(self) -> None:
        """Cut a machine's power, usually while its syncs are slow: the more is unsynced, the more tails are torn."""
        if (server := self._any_running()) is None or not self._budget.may_lose_power:
            return
        process = server.machine.process
        await self._slow_syncs([server])
        if server.machine.process is process and self._budget.may_lose_power:
            server.crash(power_loss=True)
            self._coverage.power_losses += 1
            await self._restart(server)

    async def crash_between_writes(self) -> None:
        """Crash a broker in the middle of a callback, before one of its next disk operations."""
        power_loss = self._rng.random() < 0.7 and self._budget.may_black_out
        if (server := self._any_running()) is None:
            return
        process = server.machine.process
        server.crash_at_operation(self._rng.randrange(1, OPERATIONS_MAX), power_loss=power_loss)
        await asyncio.sleep(self._rng.uniform(0.2, 1.0))
        if server.machine.process is process:
            return  # it had too few disk operations
        self._coverage.power_losses += power_loss
        self._coverage.kills += not power_loss
        await self._restart(server)

    async def black_out(self) -> None:
        """Cut the power of all machines at once; they are restarted one after the other."""
        if not self._budget.may_black_out:
            return
        self._coverage.blackouts += 1
        await self._slow_syncs(self._servers)
        running = [server for server in self._servers if server.runs]
        for server in running:
            server.crash(power_loss=True)
        for server in running:
            await self._restart(server)

    async def stop(self) -> None:
        """Stop a broker cleanly. This is no fault that `heal` may cancel: a clean stop runs to its end."""
        if (server := self._any_running()) is not None and not server.paused:
            self._in_background(self._stop(server))

    async def _stop(self, server: Server) -> None:
        if await server.stop():
            self._coverage.clean_stops += 1
            await self._restart(server)

    async def _slow_syncs(self, servers: Sequence[Server]) -> None:
        """In nine of ten cases make syncs slow for a moment."""
        if self._rng.random() < 0.1:
            return
        storages = [server.machine.storage for server in servers]
        before = [storage.odds for storage in storages]
        for storage in storages:
            storage.odds = replace(storage.odds, sync=STUCK_SYNC)
        await asyncio.sleep(self._rng.uniform(0.05, 0.4))
        for storage, odds in zip(storages, before, strict=True):
            storage.odds = odds

    async def _restart(self, server: Server) -> None:
        await asyncio.sleep(self._rng.choice([0.0, 0.1, 0.5, 2.0]) * self._rng.random())
        if not server.runs:
            self._in_background(server.start())
