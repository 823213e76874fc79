"""A whole world from one seed: loop, network, machines, and the trace of what happened.

    with World(seed=7) as world:
        world.run(scenario(world))
        world.digest        # the same for the same seed, in every Python process

The scenario is a coroutine of the world itself: it boots and crashes machines, and no crash touches it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from tailrace.testing.simulation.chance import Odds, stream
from tailrace.testing.simulation.incarnation import owner
from tailrace.testing.simulation.loop import SECONDS_DEFAULT_MAX, STEPS_DEFAULT_MAX, SimLoop
from tailrace.testing.simulation.machine import Machine
from tailrace.testing.simulation.network import Network
from tailrace.testing.simulation.trace import Trace

T = TypeVar("T")

LOOK_EVERY_SECONDS: Final = 0.001


class World:
    def __init__(
        self,
        seed: int,
        *,
        odds: Odds | None = None,
        keep_lines: bool = False,
        steps_max: int = STEPS_DEFAULT_MAX,
        seconds_max: float = SECONDS_DEFAULT_MAX,
    ) -> None:
        self.seed = seed
        self.odds = odds or Odds()
        self.loop = SimLoop()
        self.loop.steps_max = steps_max
        self.loop.seconds_max = seconds_max
        self.random = stream(seed, "scenario")  # for the scenario's own choices
        self._trace = Trace(keep=keep_lines)
        self.network = Network(self.loop, stream(seed, "network"), self.odds, self.trace)
        self._machines: dict[str, Machine] = {}

    def machine(self, name: str) -> Machine:
        """The machine of this name; a new one, not booted, when there is none yet."""
        if name not in self._machines:
            self._machines[name] = Machine(name, self.seed, self.loop, self.network, self.odds, self._trace)
        return self._machines[name]

    @property
    def machines(self) -> list[Machine]:
        return list(self._machines.values())

    def run(self, main: "Coroutine[Any, Any, T] | asyncio.Future[T]") -> T:
        """Run the scenario to its end; a failure names the seed and the virtual time."""
        try:
            result: T = self.loop.run_until_complete(main)
        except BaseException as error:
            error.add_note(f"in the simulation of seed {self.seed}, at {self.loop.time():.6f} s")
            raise
        return result

    async def until(self, condition: Callable[[], bool], *, within_seconds: float = 60.0) -> None:
        """Wait, in virtual time, for something to become true; TimeoutError when it does not."""
        deadline = self.loop.time() + within_seconds
        while not condition():
            if self.loop.time() >= deadline:
                raise TimeoutError(f"not within {within_seconds} virtual seconds")
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    def trace(self, kind: str, *fields: object) -> None:
        """Put something into the history: fields whose `repr` is the same in every Python process."""
        process = owner.get()
        self._trace.add(self.loop.time(), process.name if process is not None else "-", kind, fields)

    @property
    def lines(self) -> list[str]:
        assert self._trace.lines is not None, "this world keeps no lines: World(seed, keep_lines=True)"
        return self._trace.lines

    @property
    def digest(self) -> str:
        """What happened up to now, in a few letters."""
        return f"{self._trace.digest}-{self.loop.steps}"

    def close(self) -> None:
        for machine in self._machines.values():
            if machine.process is not None:
                machine.process.alive = False
                machine.process.halted = True
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
