"""Faults in which no broker crashes: partitions, pauses, clock jumps, full and slow disks, leadership transfers.

Each fault is a coroutine that begins it, lets it last and ends it. They overlap at random; `FaultSchedule.heal` cancels
them and undoes what they left.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tailrace.raft.events import Transfer
from tailrace.raft.replica import Role
from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.invariants.observer import partitions_of
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import Delay, World

CLOCK_JUMP_MAX_MS: Final = 25 * 60_000  # brokers rightly refuse producers' timestamps that lie an hour ahead
SLOW_SYNC: Final = Delay(low_seconds=0.05, high_seconds=0.8)


class Disturbances:
    def __init__(self, world: World, rng: random.Random, servers: Sequence[Server], coverage: Coverage) -> None:
        self._world = world
        self._network = world.network
        self._rng = rng
        self._servers = servers  # grows while brokers join
        self._coverage = coverage

    def _any(self) -> Server:
        return self._rng.choice(self._servers)

    def _any_two(self) -> tuple[Server, Server]:
        """Two different servers, if there are two."""
        one = self._any()
        return one, self._rng.choice([server for server in self._servers if server is not one] or [one])

    # The network

    async def cut_off_from_brokers(self) -> None:
        """Cut one broker off from all others, but not from clients: what it appends as a leader will be truncated."""
        one = self._leader() or self._any()
        self._coverage.cuts += 1
        for other in self._servers:
            if other is not one:
                self._network.cut(one.name, other.name)
        await self._wait(1.0, 5.0)
        self._network.heal(one.name)

    async def cut_off_and_reelect(self) -> None:
        """Cut a leader off so that it appends batches no follower gets, heal, and hand leadership back to it.

        It has truncated those batches by then, and its clients may still be connected to it.
        """
        one = self._leader() or self._any()
        self._coverage.cuts += 1
        for other in self._servers:
            if other is not one:
                self._network.cut(one.name, other.name)
        await self._wait(1.0, 3.0)
        self._network.heal(one.name)
        await self._wait(0.05, 0.6)
        for other in self._servers:
            if other is not one:
                self._transfer_all(other, one)

    def _transfer_all(self, server: Server, to: Server) -> None:
        """Transfer leadership of every partition that `server` leads and in which `to` votes."""
        target = None if to.startup is None else to.startup.voter  # not known early in the start

        async def transfer() -> None:
            for partition in list(partitions_of(server)):
                wanted = [voter for voter in partition.replica.others if voter == target]
                if partition.replica.role is Role.LEADER and wanted:
                    partition.member.step(Transfer(wanted[0]))

        if server.runs and not server.paused and to.runs:
            self._coverage.transfers += 1
            server.machine.spawn(transfer())

    async def isolate(self) -> None:
        """Cut one broker off from all other machines, clients included."""
        one = self._any()
        self._coverage.cuts += 1
        self._network.isolate(one.name)
        await self._wait(0.3, 4.0)
        self._network.heal(one.name)

    async def cut(self) -> None:
        one, other = self._any_two()
        self._coverage.cuts += 1
        self._network.cut(one.name, other.name)
        await self._wait(0.3, 4.0)
        self._network.heal(one.name, other.name)

    async def cut_one_way(self) -> None:
        one, other = self._any_two()
        self._coverage.one_way_cuts += 1
        self._network.cut(one.name, other.name, one_way=True)
        await self._wait(0.3, 4.0)
        self._network.heal(one.name, other.name)

    async def reset(self) -> None:
        """Reset the connections between two brokers; what was in flight is lost."""
        one, other = self._any_two()
        self._coverage.resets += self._network.reset(one.name, other.name) > 0

    # Processes, clocks and disks

    async def pause(self) -> None:
        one = self._leader() or self._any()
        if not one.runs or one.paused:
            return
        self._coverage.pauses += 1
        one.machine.pause()
        process = one.machine.process
        await self._wait(0.05, 4.0)
        if one.machine.process is process:
            one.machine.resume()

    async def set_clock(self) -> None:
        self._coverage.clock_jumps += 1
        self._any().machine.clock.jump(self._rng.randint(-CLOCK_JUMP_MAX_MS, CLOCK_JUMP_MAX_MS))

    async def fill_disk(self) -> None:
        storage = self._any().machine.storage
        self._coverage.full_disks += 1
        storage.fill(self._rng.choice([0, 40, 300, 2_000]), new_names=self._rng.random() < 0.5)
        await self._wait(0.05, 1.5)
        storage.make_room()

    async def slow_disk(self) -> None:
        storage = self._any().machine.storage
        self._coverage.slow_syncs += 1
        storage.odds = replace(self._world.odds, sync=SLOW_SYNC)
        await self._wait(0.3, 3.0)
        storage.odds = self._world.odds

    # Leaders

    async def transfer(self) -> None:
        """Let the leader of one partition transfer leadership to another voter."""
        server = self._any()
        leading = [one for one in partitions_of(server) if one.replica.role is Role.LEADER and one.replica.others]
        if not server.runs or server.paused or not leading:
            return
        partition = self._rng.choice(leading)
        successor = self._rng.choice(partition.replica.others)

        async def step() -> None:
            partition.member.step(Transfer(successor))

        self._coverage.transfers += 1
        server.machine.spawn(step())

    def _leader(self) -> Server | None:
        """In four of five cases a broker that leads a partition, often the controller (its partition comes first)."""
        leads = [
            (server, [one.replica.role is Role.LEADER for one in partitions_of(server)]) for server in self._servers
        ]
        controllers = [server for server, roles in leads if roles[:1] == [True]]
        leading = [server for server, roles in leads if any(roles)]
        chosen = controllers if controllers and self._rng.random() < 0.3 else leading
        return self._rng.choice(chosen) if chosen and self._rng.random() < 0.8 else None

    async def _wait(self, low_seconds: float, high_seconds: float) -> None:
        await asyncio.sleep(self._rng.uniform(low_seconds, high_seconds))
