"""A machine: a disk and a clock that last, and one process at a time that does not.

boot     a new process (a new incarnation) with its own ports
crash    power_loss=False: kill -9. All written bytes stay, synced or not; the boot id stays; connections are reset.
         power_loss=True: the plug. Any part of what was not synced is lost; a new boot id; peers hear nothing.
pause    nothing of the process runs, while disk, network and time go on; `resume` lets it catch up
stop     what SIGTERM does
"""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from tailrace.ports import Ports
from tailrace.ports.randomness import SeededRandom
from tailrace.testing.simulation.chance import Odds, stream
from tailrace.testing.simulation.clock import MachineClock, SimClock
from tailrace.testing.simulation.disk import SimDisk
from tailrace.testing.simulation.failures import Crashed
from tailrace.testing.simulation.host import SimHost
from tailrace.testing.simulation.incarnation import Incarnation
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.net import SimNet
from tailrace.testing.simulation.network import Network
from tailrace.testing.simulation.offload import SimOffload
from tailrace.testing.simulation.storage import Storage
from tailrace.testing.simulation.trace import Trace

T = TypeVar("T")


class Machine:
    def __init__(self, name: str, seed: int, loop: SimLoop, network: Network, odds: Odds, trace: Trace) -> None:
        self.name = name
        self._seed = seed
        self._loop = loop
        self._network = network
        self._odds = odds
        self._trace = trace
        self._chance = stream(seed, "machine", name)
        self.storage = Storage(loop, stream(seed, "disk", name), odds, self._tell)
        self.clock = MachineClock(loop, stream(seed, "clock", name), odds)
        self.process: Incarnation | None = None  # the one that runs, or is paused
        self.boots = 0
        self._boot_id = self._new_boot_id()
        self._host: SimHost | None = None
        self._waiting: list[asyncio.Future[Any]] = []
        network.powered(name)

    def boot(self) -> Ports:
        """Start a process: the world as it will see it."""
        if self.process is not None:
            raise RuntimeError(f"{self.name} runs already; crash it first")
        self.boots += 1
        process = self.process = Incarnation(self.name, self.boots)
        self._network.powered(self.name)
        self._host = SimHost(process, self._boot_id)
        self._tell("boot", self.boots)
        return Ports(
            clock=SimClock(self.clock, process),
            random=SeededRandom(self._stream("random")),
            disk=SimDisk(self.storage, process),
            net=SimNet(self._network, process),
            offload=SimOffload(self._loop, self._stream("offload"), self._odds, process),
            host=self._host,
        )

    def spawn(self, work: Coroutine[Any, Any, T], name: str | None = None) -> "asyncio.Task[T]":
        """Run a coroutine as part of the process. It is never heard of again when the process dies."""
        return self._loop.create_task(work, name=name, context=self._running().context.copy())

    def run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Run a coroutine as part of the process, and wait for it from outside: `Crashed` when the process dies."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(answer)
        task = self.spawn(work)

        def ended(task: "asyncio.Task[T]") -> None:
            if answer in self._waiting:
                self._waiting.remove(answer)
            if answer.done():
                return
            if task.cancelled():
                answer.cancel()
            elif (error := task.exception()) is not None:
                answer.set_exception(error)
            else:
                answer.set_result(task.result())

        task.add_done_callback(ended)
        return answer

    def crash(self, *, power_loss: bool) -> None:
        """End the process between two of its steps; nothing of it runs any more."""
        process = self._running()
        self._tell("crash", power_loss)
        process.alive = False
        process.halted = True
        self.process = self._host = None
        self._network.process_died(process, power_loss=power_loss)
        if power_loss:
            self.storage.power_cut()
            self.clock.rebooted()
            self._boot_id = self._new_boot_id()
        else:
            self.storage.process_died()
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            if not answer.done():
                answer.set_exception(Crashed(f"{process!r} crashed"))

    def crash_at_operation(self, number: int, *, power_loss: bool) -> None:
        """Crash just before the `number`-th write or change of names from now: its call raises `Dead`."""
        self.storage.at_operation(number, lambda: self.crash(power_loss=power_loss))

    def pause(self) -> None:
        self._tell("pause")
        self._running().halted = True

    def resume(self) -> None:
        self._tell("resume")
        self._loop.resume(self._running())

    def stop(self) -> None:
        """Ask the process to stop, as SIGTERM does."""
        process = self._running()
        assert self._host is not None
        for callback in self._host.stop_callbacks:
            self._loop.call_soon(callback, context=process.context)

    def _running(self) -> Incarnation:
        if self.process is None:
            raise RuntimeError(f"{self.name} does not run; boot it first")
        return self.process

    def _stream(self, purpose: str) -> random.Random:
        return stream(self._seed, purpose, self.name, str(self.boots))

    def _new_boot_id(self) -> str:
        return self._chance.randbytes(16).hex()

    def _tell(self, kind: str, *fields: object) -> None:
        self._trace.add(self._loop.time(), self.name, kind, fields)
