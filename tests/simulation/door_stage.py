"""Three simulated brokers with one more door, which crash and are cut off from each other while clients use it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from tailrace.broker.node import Node
from tailrace.broker.starting import Startup
from tailrace.doors.door import Door, open_doors
from tailrace.doors.kafka import KafkaDoor
from tailrace.ports import Ports
from tailrace.testing.scenarios.cluster.plan import Plan, plan_for
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import World
from tailrace.testing.simulation.randomness import random_stream

BROKERS: Final = 3
ANSWER_MAX_S: Final = 40.0
RETRY_S: Final = 0.2

S = TypeVar("S", bound="DoorServer")
H = TypeVar("H")


class DoorServer(Server):
    def __init__(self, world: World, number: int, plan: Plan, **settings: Any) -> None:
        super().__init__(world, number, plan, "" if number == 1 else "b1:9092")
        self._settings = replace(self._settings, **settings)

    async def _serve(self, ports: Ports) -> None:
        startup = self.startup = Startup(ports, self._settings)
        node = self.node = await startup.run()
        kafka = KafkaDoor(node)
        await open_doors(node, [kafka, self.door_of(node)])
        self.opened(node)
        self.door = kafka

    def door_of(self, node: Node) -> Door:
        raise NotImplementedError

    def opened(self, node: Node) -> None:
        """Called when the broker serves clients, before it is known to."""


class DoorStage(Generic[S, H]):
    """What clients do is in `play`; what they were told is the history."""

    def __init__(self, world: World, name: str, server: Callable[[World, int, Plan], S], history: H) -> None:
        self._world = world
        self._chance = random_stream(world.seed, name)
        plan = replace(plan_for(world.seed), brokers=BROKERS, late_joiners=0, fsync="always", share_groups=())
        self.servers = [server(world, number, plan) for number in range(1, BROKERS + 1)]
        self.history = history

    async def play(self) -> None:
        raise NotImplementedError

    async def run(self) -> H:
        await self.start()
        await self.play()
        return self.history

    async def start(self) -> None:
        for server in self.servers:
            await server.start()
            await self._world.until(lambda one=server: one.serves)  # type: ignore[misc]

    async def disturb(self, times_max: int) -> None:
        """Crash a broker, or cut two off from each other, one after the other; then heal everything."""
        chance = self._chance
        for _ in range(chance.randint(2, times_max)):
            await asyncio.sleep(chance.uniform(0.2, 3.0))
            if chance.random() < 0.7:
                server = chance.choice(self.servers)
                server.crash(power_loss=chance.random() < 0.5)
                await asyncio.sleep(chance.uniform(0.1, 3.0))
                self._world.loop.create_task(server.start())
                await self._world.until(lambda one=server: one.serves)  # type: ignore[misc]
            else:
                one, other = chance.sample(self.servers, 2)
                self._world.network.cut(one.name, other.name)
                await asyncio.sleep(chance.uniform(0.1, 6.0))
                self._world.network.heal()


def run_stage(seed: int, stage: Callable[[World], DoorStage[Any, H]], *, steps_max: int) -> tuple[H, str]:
    """The history of a seed, and its digest."""
    with World(seed, odds=plan_for(seed).odds, steps_max=steps_max, seconds_max=3600.0) as world:
        history = world.run(stage(world).run())
        return history, world.digest
