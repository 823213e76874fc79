"""What happens to a broker's machine while it works: the disk fills up and is emptied, people set the clock.

Each spell is short, and over before the machine is started anew: a broker that cannot vote does not start. The clock
moves within bounds: a producer's timestamp that lies an hour ahead would be refused, and rightly.
"""

import asyncio
import random
from typing import Final

from tailrace.testing.simulation import Machine

CLOCK_MAX_MS: Final = 25 * 60_000


class BackgroundFaults:
    def __init__(self, machine: Machine, rng: random.Random) -> None:
        self._machine = machine
        self._rng = rng
        self._clock_off_ms = 0
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
        self.clear()

    async def _set_clock(self) -> None:
        target = self._rng.randint(-CLOCK_MAX_MS, CLOCK_MAX_MS)
        self._machine.clock.jump(target - self._clock_off_ms)
        self._clock_off_ms = target
        self.clock_jumps += 1

    def clear(self) -> None:
        self._machine.storage.make_room()
