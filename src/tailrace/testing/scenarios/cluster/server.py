"""One broker of the cluster: its machine, its starts, stops and crashes.

A start that fails (the disk is full, no broker to join answers) ends its process and is tried again, as a supervisor
would do. Just before a crash the broker is observed, so that what a leader did last is checked, too.
"""

import asyncio
from typing import Final, Protocol

from tailrace.broker.node import CannotStart, Node
from tailrace.broker.starting import Startup
from tailrace.doors.kafka import KafkaDoor, open_door
from tailrace.model.faults import Fault
from tailrace.ports import Ports
from tailrace.testing.scenarios.cluster.plan import DATA_DIR, KAFKA_PORT, Plan
from tailrace.testing.simulation import Crashed, World

RESTART_SECONDS: Final = 0.5


class CrashObserver(Protocol):
    def before_crash(self, server: "Server") -> None:
        """Called between two callbacks of the broker, just before it crashes."""

    def after_power_loss(self, server: "Server") -> None: ...


class Server:
    def __init__(self, world: World, number: int, plan: Plan, join: str) -> None:
        self.name = f"b{number}"
        self.machine = world.machine(self.name)
        self.observer: CrashObserver | None = None
        self.startup: Startup | None = None  # of the process that runs: what is open so far can be looked at
        self.node: Node | None = None  # once it has started
        self.door: KafkaDoor | None = None  # set while the broker serves clients
        self.refusal = ""  # why the last failed start failed
        self.refused_starts = 0
        self._settings = plan.settings(self.name, join)

    @property
    def address(self) -> str:
        return f"{self.name}:{KAFKA_PORT}"

    @property
    def votes_path(self) -> str:
        return f"{DATA_DIR}/votes"

    @property
    def runs(self) -> bool:
        return self.machine.process is not None

    @property
    def paused(self) -> bool:
        return self.machine.process is not None and self.machine.process.halted

    @property
    def serves(self) -> bool:
        return self.door is not None

    async def start(self) -> None:
        """Start the broker, again and again if need be, until it serves clients or crashes."""
        while not self.runs:
            try:
                await self.machine.run(self._serve(self.machine.boot()))
            except Crashed:
                return
            except (CannotStart, Fault, OSError) as error:
                self.refusal = str(error)
                self.refused_starts += 1
                self.crash(power_loss=False)
                await asyncio.sleep(RESTART_SECONDS)
            else:
                return

    async def _serve(self, ports: Ports) -> None:
        startup = self.startup = Startup(ports, self._settings)
        node = self.node = await startup.run()
        self.door = await open_door(node)

    def crash(self, *, power_loss: bool, between_callbacks: bool = True) -> None:
        if not self.runs:
            return
        if self.observer is not None and between_callbacks:
            self.observer.before_crash(self)
        self.machine.crash(power_loss=power_loss)
        self.startup = self.node = self.door = None
        if self.observer is not None and power_loss:
            self.observer.after_power_loss(self)

    def crash_at_operation(self, number: int, *, power_loss: bool) -> None:
        """Crash in the middle of a callback, just before the `number`-th write, create, rename or remove from now."""
        self.machine.storage.at_operation(number, lambda: self.crash(power_loss=power_loss, between_callbacks=False))

    async def stop(self) -> bool:
        """Stop the broker cleanly; False if it was not serving, or crashed while it stopped."""
        node, door = self.node, self.door
        if node is None or door is None:
            return False
        try:
            await self.machine.run(_stop(node, door))
        except Crashed:
            return False
        except asyncio.CancelledError:
            self.crash(power_loss=False)  # rather than leave the broker half stopped
            raise
        self.crash(power_loss=False)
        return True


async def _stop(node: Node, door: KafkaDoor) -> None:
    door.close()
    await node.stop()
