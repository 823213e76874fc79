"""Injects faults for as long as the plan says, one picked at random after the other, and heals everything at the end.

Faults overlap: each is a task of its own that begins the fault, lets it last and ends it.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.faults.budget import Budget
from tailrace.testing.scenarios.cluster.faults.crashes import Crashes
from tailrace.testing.scenarios.cluster.faults.disk_damage import Damage, flip_bit_in_log, is_on_disk
from tailrace.testing.scenarios.cluster.faults.disturbances import Disturbances
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observer import ClusterObserver, partitions_of
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import World

COMPLETE_MAX_SECONDS: Final = 10.0  # to wait for all replicas to be complete
CHECK_SECONDS: Final = 0.05
SCRUBBED_MAX_SECONDS: Final = 30.0  # until the scrub has found a flipped bit, and the replica is repaired
NEVER: Final = float("inf")

Fault = Callable[[], Coroutine[Any, Any, None]]
InBackground = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class FaultSchedule:
    def __init__(
        self,
        world: World,
        plan: Plan,
        servers: Sequence[Server],
        observer: ClusterObserver,
        coverage: Coverage,
        in_background: InBackground,
    ) -> None:
        self._world = world
        self._plan = plan
        self._servers = servers
        self._observer = observer
        self._coverage = coverage
        self._budget = budget = Budget(plan, servers, observer.histories)
        self._in_background = in_background
        self._rng: random.Random = world.random
        self._tasks: list[asyncio.Task[None]] = []
        self._faults = self._weighted_faults(
            Disturbances(world, world.random, servers, coverage),
            Crashes(world.random, servers, budget, coverage, in_background),
        )

    def _weighted_faults(self, disturbances: Disturbances, crashes: Crashes) -> list[tuple[int, Fault]]:
        of_one_broker: list[tuple[int, Fault]] = [
            (3, crashes.kill),
            (9, crashes.lose_power),
            (4, crashes.crash_between_writes),
            (1, crashes.black_out),
            (2, crashes.stop),
            (3, disturbances.pause),
            (1, disturbances.set_clock),
            (2, disturbances.fill_disk),
            (2, disturbances.slow_disk),
            (2, disturbances.isolate),
        ]
        between_brokers: list[tuple[int, Fault]] = [
            (5, disturbances.cut_off_from_brokers),
            (4, disturbances.cut_off_and_reelect),
            (3, disturbances.cut),
            (3, disturbances.cut_one_way),
            (3, disturbances.reset),
            (3, disturbances.transfer),
        ]
        return of_one_broker if self._plan.brokers == 1 else of_one_broker + between_brokers

    async def run(self, joins: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Inject faults until the plan's time is over; brokers join (`joins`) meanwhile."""
        loop, joins_left = self._world.loop, list(joins)
        end = loop.time() + self._plan.fault_seconds
        flip_at = loop.time() + self._rng.random() * self._plan.fault_seconds if self._plan.flips_bit else NEVER
        weights = [weight for weight, _ in self._faults]
        while loop.time() < end:
            await asyncio.sleep(self._rng.expovariate(1 / self._plan.fault_interval_seconds))
            if joins_left and self._rng.random() < 0.5:
                await joins_left.pop()()
            if loop.time() >= flip_at:
                await self._flip_bit()
                flip_at = NEVER
            fault = self._rng.choices(self._faults, weights)[0][1]
            self._tasks.append(self._in_background(fault()))
        for join in joins_left:
            await join()

    async def _flip_bit(self) -> None:
        """Flip a bit on one machine, while all replicas are complete; see `budget`."""
        await self.heal()
        if not await self._wait_until_complete() or not self._budget.may_lose_a_copy:
            return
        server = self._rng.choice(self._servers)
        damage = flip_bit_in_log(server, self._rng)
        if damage is not None:
            self._coverage.flipped_bits += 1
            self._observer.damaged[server.name, damage.partition.key] = None
        if not server.runs:
            self._in_background(server.start())
        if damage is not None and damage.for_scrub:
            await self._wait_until_repaired(server, damage)
        if damage is not None and not damage.is_detectable:
            await self._wait_until_complete()

    async def _wait_until_repaired(self, server: Server, damage: Damage) -> None:
        deadline = self._world.loop.time() + SCRUBBED_MAX_SECONDS
        while is_on_disk(server, damage) or not self._votes(server, damage):
            if damage.partition.key.topic_id in self._observer.deleted:
                return
            if self._world.loop.time() >= deadline:
                raise InvariantViolated(
                    Invariant.SCRUBBED, f"{damage.partition.name} on {server.name}: {damage.batch} is not repaired"
                )
            await asyncio.sleep(CHECK_SECONDS)
        self._coverage.scrubbed += 1

    def _votes(self, server: Server, damage: Damage) -> bool:
        """Whether the damaged replica is whole again. All replicas are hardly ever complete while clients write."""
        return server.serves and any(
            one.key == damage.partition.key and one.log.damage is None and one.replica.may_vote
            for one in partitions_of(server)
        )

    async def _wait_until_complete(self) -> bool:
        """Wait until every replica is complete; False if that takes too long."""
        deadline = self._world.loop.time() + COMPLETE_MAX_SECONDS
        while not self._budget.all_replicas_complete:
            if self._world.loop.time() >= deadline:
                return False
            await asyncio.sleep(CHECK_SECONDS)
        return True

    async def heal(self) -> None:
        """End all faults and start all brokers that are down."""
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
                self._in_background(server.start())
