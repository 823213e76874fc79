"""A simulated world: one seed, one event loop, a network, machines, and the trace of what happened.

    with World(seed=7) as world:
        world.run(scenario(world))
        world.digest        # the same for the same seed, in every Python process

The scenario is a coroutine that belongs to no machine. It boots and crashes machines, and no crash stops it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from tailrace.testing.simulation.loop import SECONDS_DEFAULT_MAX, STEPS_DEFAULT_MAX, SimLoop
from tailrace.testing.simulation.machine import Machine
from tailrace.testing.simulation.network import Network
from tailrace.testing.simulation.process import current_process
from tailrace.testing.simulation.randomness import Odds, random_stream
from tailrace.testing.simulation.trace import Trace

T = TypeVar("T")

POLL_SECONDS: Final = 0.001  # virtual


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
        self.random = random_stream(seed, "scenario")  # for the choices that the scenario makes
        self._trace = Trace(keep=keep_lines)
        self.network = Network(self.loop, random_stream(seed, "network"), self.odds, self.trace)
        self._machines: dict[str, Machine] = {}

    def machine(self, name: str) -> Machine:
        """The machine of this name; it is created, and not booted yet, the first time it is named."""
        if name not in self._machines:
            self._machines[name] = Machine(name, self.seed, self.loop, self.network, self.odds, self._trace)
        return self._machines[name]

    @property
    def machines(self) -> list[Machine]:
        return list(self._machines.values())

    def run(self, main: "Coroutine[Any, Any, T] | asyncio.Future[T]") -> T:
        """Run the scenario to its end; a note on any exception names the seed and the virtual time."""
        try:
            result: T = self.loop.run_until_complete(main)
        except BaseException as error:
            error.add_note(f"in the simulation of seed {self.seed}, at {self.loop.time():.6f} s")
            raise
        return result

    async def until(self, condition: Callable[[], bool], *, within_seconds: float = 60.0) -> None:
        """Wait in virtual time until the condition holds; TimeoutError if it does not within the deadline."""
        deadline = self.loop.time() + within_seconds
        while not condition():
            if self.loop.time() >= deadline:
                raise TimeoutError(f"the condition did not hold within {within_seconds} virtual seconds")
            await asyncio.sleep(POLL_SECONDS)

    def trace(self, kind: str, *fields: object) -> None:
        """Add a line to the history; the `repr` of every field must be the same in every Python process."""
        process = current_process.get()
        self._trace.add(self.loop.time(), process.machine if process is not None else "-", kind, fields)

    @property
    def lines(self) -> list[str]:
        assert self._trace.lines is not None, "this world keeps no lines; create it with keep_lines=True"
        return self._trace.lines

    @property
    def digest(self) -> str:
        """A hash of all that happened so far, and the number of callbacks that ran."""
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
