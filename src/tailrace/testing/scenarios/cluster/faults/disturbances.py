"""What goes wrong without anybody dying: networks, clocks, disks, processes that stand still, leaders that hand over.

Each fault is a coroutine that begins it, lets it last and ends it. They overlap as chance has it; whoever heals the
cluster cancels them and undoes what they left.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tailrace.raft.events import Transfer
from tailrace.raft.replica import Role
from tailrace.testing.scenarios.cluster.encountered import Encountered
from tailrace.testing.scenarios.cluster.invariants.watch import partitions_of
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import Delay, World

CLOCK_MAX_MS: Final = 25 * 60_000  # a producer's timestamp that lies an hour ahead would be refused, and rightly
SLOW_SYNC: Final = Delay(low_seconds=0.05, high_seconds=0.8)


class Faults:
    def __init__(self, world: World, chance: random.Random, servers: Sequence[Server], met: Encountered) -> None:
        self._world = world
        self._network = world.network
        self._chance = chance
        self._servers = servers  # grows while brokers join
        self._met = met

    def any(self) -> Server:
        return self._chance.choice(self._servers)

    def two(self) -> tuple[Server, Server]:
        """Two different ones, where there are two."""
        one = self.any()
        return one, self._chance.choice([server for server in self._servers if server is not one] or [one])

    # The network

    async def cut_off(self) -> None:
        """One broker hears no other; its clients reach it, and it them: what it writes down now will be cut."""
        one = self.leader() or self.any()
        self._met.cuts += 1
        for other in self._servers:
            if other is not one:
                self._network.cut(one.name, other.name)
        await self._last(1.0, 5.0)
        self._network.heal(one.name)

    async def swing(self) -> None:
        """A leader is cut off, writes what nobody else gets, is cut, and leads again before its clients have gone."""
        one = self.leader() or self.any()
        self._met.cuts += 1
        for other in self._servers:
            if other is not one:
                self._network.cut(one.name, other.name)
        await self._last(1.0, 3.0)
        self._network.heal(one.name)
        await self._last(0.05, 0.6)
        for other in self._servers:
            if other is not one:
                self._hand_all_over(other, one)

    def _hand_all_over(self, server: Server, to: Server) -> None:
        """Whatever one broker leads, and another can."""
        me = None if to.startup is None else to.startup.voter  # None: it does not know yet which broker it is

        async def hand_over() -> None:
            for partition in list(partitions_of(server)):
                wanted = [voter for voter in partition.replica.others if voter == me]
                if partition.replica.role is Role.LEADER and wanted:
                    partition.step(Transfer(wanted[0]))

        if server.runs and not server.paused and to.runs:
            self._met.transfers += 1
            server.machine.spawn(hand_over())

    async def isolate(self) -> None:
        """One broker hears nobody at all."""
        one = self.any()
        self._met.cuts += 1
        self._network.isolate(one.name)
        await self._last(0.3, 4.0)
        self._network.heal(one.name)

    async def cut(self) -> None:
        one, other = self.two()
        self._met.cuts += 1
        self._network.cut(one.name, other.name)
        await self._last(0.3, 4.0)
        self._network.heal(one.name, other.name)

    async def cut_one_way(self) -> None:
        one, other = self.two()
        self._met.one_way_cuts += 1
        self._network.cut(one.name, other.name, one_way=True)
        await self._last(0.3, 4.0)
        self._network.heal(one.name, other.name)

    async def reset(self) -> None:
        """All that was under way between two brokers is lost, and both know."""
        one, other = self.two()
        self._met.resets += self._network.reset(one.name, other.name) > 0

    # Processes, clocks and disks

    async def pause(self) -> None:
        one = self.leader() or self.any()
        if not one.runs or one.paused:
            return
        self._met.pauses += 1
        one.machine.pause()
        process = one.machine.process
        await self._last(0.05, 4.0)
        if one.machine.process is process:
            one.machine.resume()

    async def set_clock(self) -> None:
        self._met.clock_jumps += 1
        self.any().machine.clock.jump(self._chance.randint(-CLOCK_MAX_MS, CLOCK_MAX_MS))

    async def fill_disk(self) -> None:
        storage = self.any().machine.storage
        self._met.full_disks += 1
        storage.fill(self._chance.choice([0, 40, 300, 2_000]), new_names=self._chance.random() < 0.5)
        await self._last(0.05, 1.5)
        storage.make_room()

    async def slow_disk(self) -> None:
        storage = self.any().machine.storage
        self._met.slow_syncs += 1
        storage.odds = replace(self._world.odds, sync=SLOW_SYNC)
        await self._last(0.3, 3.0)
        storage.odds = self._world.odds

    # Leaders

    async def transfer(self) -> None:
        """Some leader is told to hand over to some other voter."""
        server = self.any()
        leading = [one for one in partitions_of(server) if one.replica.role is Role.LEADER and one.replica.others]
        if not server.runs or server.paused or not leading:
            return
        partition = self._chance.choice(leading)
        successor = self._chance.choice(partition.replica.others)

        async def hand_over() -> None:
            partition.step(Transfer(successor))

        self._met.transfers += 1
        server.machine.spawn(hand_over())

    def leader(self) -> Server | None:
        """A broker that leads something, mostly; often the controller, whose partition comes first."""
        leads = [
            (server, [one.replica.role is Role.LEADER for one in partitions_of(server)]) for server in self._servers
        ]
        controllers = [server for server, roles in leads if roles[:1] == [True]]
        leading = [server for server, roles in leads if any(roles)]
        chosen = controllers if controllers and self._chance.random() < 0.3 else leading
        return self._chance.choice(chosen) if chosen and self._chance.random() < 0.8 else None

    async def _last(self, low_seconds: float, high_seconds: float) -> None:
        await asyncio.sleep(self._chance.uniform(low_seconds, high_seconds))
