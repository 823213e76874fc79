"""Picks what goes wrong next, for as long as the trouble lasts, and heals everything when it is over."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.faults.budget import Budget
from tailrace.testing.scenarios.cluster.faults.crashes import Crashes
from tailrace.testing.scenarios.cluster.faults.disk_damage import flip_bit_in_log
from tailrace.testing.scenarios.cluster.faults.disturbances import Disturbances
from tailrace.testing.scenarios.cluster.invariants.observer import ClusterObserver
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import World

CALM_MAX_SECONDS: Final = 10.0  # to wait for everybody to have everything
LOOK_SECONDS: Final = 0.05
NEVER: Final = float("inf")

Fault = Callable[[], Coroutine[Any, Any, None]]
Beside = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class FaultSchedule:
    def __init__(
        self,
        world: World,
        plan: Plan,
        servers: Sequence[Server],
        watch: ClusterObserver,
        coverage: Coverage,
        beside: Beside,
    ) -> None:
        self._world = world
        self._plan = plan
        self._servers = servers
        self._watch = watch
        self._coverage = coverage
        self._budget = budget = Budget(plan, servers, watch.histories)
        self._beside = beside
        self._rng: random.Random = world.random
        self._tasks: list[asyncio.Task[None]] = []
        self._menu = self._weighed(
            Disturbances(world, world.random, servers, coverage),
            Crashes(world.random, servers, budget, coverage, beside),
        )

    def _weighed(self, faults: Disturbances, outages: Crashes) -> list[tuple[int, Fault]]:
        alone: list[tuple[int, Fault]] = [
            (3, outages.kill),
            (9, outages.lose_power),
            (4, outages.crash_in_mid_write),
            (1, outages.black_out),
            (2, outages.stop),
            (3, faults.pause),
            (1, faults.set_clock),
            (2, faults.fill_disk),
            (2, faults.slow_disk),
            (2, faults.isolate),
        ]
        together: list[tuple[int, Fault]] = [
            (5, faults.cut_off),
            (4, faults.swing),
            (3, faults.cut),
            (3, faults.cut_one_way),
            (3, faults.reset),
            (3, faults.transfer),
        ]
        return alone if self._plan.brokers == 1 else alone + together

    async def run(self, joins: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Until the plan's time is up; `joins` happen on the way."""
        loop, waiting = self._world.loop, list(joins)
        end = loop.time() + self._plan.seconds
        damage_at = loop.time() + self._rng.random() * self._plan.seconds if self._plan.damage else NEVER
        weights = [weight for weight, _ in self._menu]
        while loop.time() < end:
            await asyncio.sleep(self._rng.expovariate(1 / self._plan.pause_seconds))
            if waiting and self._rng.random() < 0.5:
                await waiting.pop()()
            if loop.time() >= damage_at:
                await self._damage()
                damage_at = NEVER
            fault = self._rng.choices(self._menu, weights)[0][1]
            self._tasks.append(self._beside(fault()))
        for join in waiting:
            await join()

    async def _damage(self) -> None:
        """Once, on one machine, and only when everybody has everything."""
        await self.heal()
        if not await self._calm() or not self._budget.may_lose_a_copy:
            return
        server = self._rng.choice(self._servers)
        damage = flip_bit_in_log(server, self._rng)
        if damage is not None:
            self._coverage.flipped_bits += 1
            self._watch.damaged[server.name, damage.partition.key] = None
        if not server.runs:
            self._beside(server.start())
        if damage is not None and not damage.known:
            await self._calm()

    async def _calm(self) -> bool:
        """Wait until every replica has everything; False: it takes too long."""
        deadline = self._world.loop.time() + CALM_MAX_SECONDS
        while not self._budget.whole:
            if self._world.loop.time() >= deadline:
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    async def heal(self) -> None:
        """Everything works again, and everybody is started; what they make of it is theirs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._world.network.heal()
        for server in self._servers:
            server.machine.storage.make_room()
            server.machine.storage.odds = self._world.odds
            server.machine.storage.forget_operation()
            if server.paused:
                server.machine.resume()
            if not server.runs:
                self._beside(server.start())
