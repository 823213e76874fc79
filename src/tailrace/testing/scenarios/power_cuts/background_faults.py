"""Faults while the broker runs: its disk fills up for a moment, and its wall clock is set.

Each time the disk has room again soon, because a broker that cannot write its votes does not start. The clock stays
within 25 minutes of the true time: the broker rightly refuses a producer's timestamp that lies an hour ahead.
"""

import asyncio
import random
from typing import Final

from tailrace.testing.simulation import Machine

CLOCK_OFFSET_MAX_MS: Final = 25 * 60_000


class BackgroundFaults:
    def __init__(self, machine: Machine, rng: random.Random) -> None:
        self._machine = machine
        self._rng = rng
        self._clock_offset_ms = 0
        self.full_disks = 0
        self.clock_jumps = 0
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(0.05, 1.5))
            await self._rng.choice([self._fill_disk, self._set_clock])()

    async def _fill_disk(self) -> None:
        room = self._rng.choice([0, 40, 100, 300, 2_000])
        self._machine.storage.fill(room, new_names=self._rng.random() < 0.5)
        self.full_disks += 1
        await asyncio.sleep(self._rng.uniform(0.01, 0.4))
        self.make_room()

    async def _set_clock(self) -> None:
        offset_ms = self._rng.randint(-CLOCK_OFFSET_MAX_MS, CLOCK_OFFSET_MAX_MS)
        self._machine.clock.jump(offset_ms - self._clock_offset_ms)
        self._clock_offset_ms = offset_ms
        self.clock_jumps += 1

    def make_room(self) -> None:
        self._machine.storage.make_room()
