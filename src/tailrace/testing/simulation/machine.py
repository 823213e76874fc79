"""A machine: a disk and clocks that survive crashes, and at most one running process.

boot     starts a process, with its own ports
crash    power_loss=False is kill -9: all written bytes stay, synced or not; the boot id stays; connections are reset.
         power_loss=True is a power cut: any part of what was not synced is lost; the boot id changes; peers get no
         answer until they time out.
pause    stops running the process's callbacks, as SIGSTOP does; disk, network and time go on. `resume` runs the
         callbacks that became due meanwhile, in order.
stop     calls the process's stop handler, as SIGTERM does
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tailrace.ports import Ports
from tailrace.ports.randomness import SeededRandom
from tailrace.testing.simulation.clock import MachineClock, SimClock
from tailrace.testing.simulation.disk import SimDisk
from tailrace.testing.simulation.failures import Crashed
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.network import Network, SimNet
from tailrace.testing.simulation.offload import SimOffload
from tailrace.testing.simulation.process import SimProcess
from tailrace.testing.simulation.randomness import Odds, random_stream
from tailrace.testing.simulation.storage import Storage
from tailrace.testing.simulation.trace import Trace

T = TypeVar("T")


class SimHost:
    """The host port of one process: its machine's boot id, its process id and its stop handler."""

    def __init__(self, process: SimProcess, boot_id: str) -> None:
        self._process = process
        self._boot_id = boot_id
        self.stop_callbacks: list[Callable[[], None]] = []

    def boot_id(self) -> str:
        self._process.check_alive()
        return self._boot_id

    def process_id(self) -> int:
        self._process.check_alive()
        return 1000 + self._process.number

    def set_variable(self, name: str, value: str) -> None:
        """A simulated process has no environment."""

    def on_stop(self, callback: Callable[[], None]) -> None:
        self._process.check_alive()
        self.stop_callbacks[:] = [callback]  # a signal has one handler

    def on_reload(self, callback: Callable[[], None]) -> None:
        self._process.check_alive()


class Machine:
    def __init__(self, name: str, seed: int, loop: SimLoop, network: Network, odds: Odds, trace: Trace) -> None:
        self.name = name
        self._seed = seed
        self._loop = loop
        self._network = network
        self._odds = odds
        self._trace = trace
        self._rng = random_stream(seed, "machine", name)
        self.storage = Storage(loop, random_stream(seed, "disk", name), odds, self._add_to_trace)
        self.clock = MachineClock(loop, random_stream(seed, "clock", name), odds)
        self.process: SimProcess | None = None  # running or paused; None while the machine is down
        self.boots = 0
        self._boot_id = self._new_boot_id()
        self._host: SimHost | None = None
        self._awaited: list[asyncio.Future[Any]] = []  # by callers of `run`
        network.power_on(name)

    def boot(self) -> Ports:
        """Start a process; returns the ports through which it reaches its machine."""
        if self.process is not None:
            raise RuntimeError(f"{self.name} is already running; crash it first")
        self.boots += 1
        process = self.process = SimProcess(self.name, self.boots)
        self._network.power_on(self.name)
        self._host = SimHost(process, self._boot_id)
        self._add_to_trace("boot", self.boots)
        return Ports(
            clock=SimClock(self.clock, process),
            random=SeededRandom(self._stream("random")),
            disk=SimDisk(self.storage, process),
            net=SimNet(self._network, process),
            offload=SimOffload(self._loop, self._stream("offload"), self._odds, process),
            host=self._host,
        )

    def spawn(self, work: Coroutine[Any, Any, T], name: str | None = None) -> "asyncio.Task[T]":
        """Run a coroutine in the process. After a crash the task stays pending forever."""
        return self._loop.create_task(work, name=name, context=self._require_process().context.copy())

    def run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Run a coroutine in the process; await the future from outside. A crash fails the future with `Crashed`."""
        result: asyncio.Future[T] = self._loop.create_future()
        self._awaited.append(result)
        task = self.spawn(work)

        def finish(task: "asyncio.Task[T]") -> None:
            if result in self._awaited:
                self._awaited.remove(result)
            if result.done():
                return
            if task.cancelled():
                result.cancel()
            elif (error := task.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(task.result())

        task.add_done_callback(finish)
        return result

    def crash(self, *, power_loss: bool) -> None:
        """End the process between two of its callbacks; none of its code runs after that."""
        process = self._require_process()
        self._add_to_trace("crash", power_loss)
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
        awaited, self._awaited = self._awaited, []
        for result in awaited:
            if not result.done():
                result.set_exception(Crashed(f"{process!r} crashed"))

    def crash_at_operation(self, number: int, *, power_loss: bool) -> None:
        """Crash just before the `number`-th write, create, rename or remove from now; that call raises `Dead`."""
        self.storage.at_operation(number, lambda: self.crash(power_loss=power_loss))

    def pause(self) -> None:
        self._add_to_trace("pause")
        self._require_process().halted = True

    def resume(self) -> None:
        self._add_to_trace("resume")
        self._loop.resume(self._require_process())

    def stop(self) -> None:
        """Call the process's stop handler, as SIGTERM does."""
        process = self._require_process()
        assert self._host is not None
        for callback in self._host.stop_callbacks:
            self._loop.call_soon(callback, context=process.context)

    def _require_process(self) -> SimProcess:
        if self.process is None:
            raise RuntimeError(f"{self.name} is not running; boot it first")
        return self.process

    def _stream(self, purpose: str) -> random.Random:
        return random_stream(self._seed, purpose, self.name, str(self.boots))

    def _new_boot_id(self) -> str:
        return self._rng.randbytes(16).hex()

    def _add_to_trace(self, kind: str, *fields: object) -> None:
        self._trace.add(self._loop.time(), self.name, kind, fields)
