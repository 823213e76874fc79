"""One broker of the cluster: its machine, and the lives that it leads on it.

A start that is refused (the disk is full, nobody to join can be reached) is tried again, as whoever looks after a
broker would; the process of a refused start ends. Before a process dies it is looked at, so that the last moments of a
leader count, too.
"""

import asyncio
from typing import Final, Protocol

from tailrace.broker.node import CannotStart, Node
from tailrace.doors.kafka import KafkaDoor, open_door
from tailrace.model.faults import Fault
from tailrace.ports import Ports
from tailrace.testing.scenarios.cluster.plan import DATA_DIR, KAFKA_PORT, Plan
from tailrace.testing.simulation import Crashed, World

AGAIN_SECONDS: Final = 0.5


class CrashObserver(Protocol):
    """Who wants to know how servers die."""

    def dies(self, server: "Server") -> None:
        """It is about to, between two events."""

    def lost_power(self, server: "Server") -> None: ...


class Server:
    def __init__(self, world: World, number: int, plan: Plan, join: str) -> None:
        self.name = f"b{number}"
        self.machine = world.machine(self.name)
        self.witness: CrashObserver | None = None
        self.node: Node | None = None
        self.door: KafkaDoor | None = None  # while it serves
        self.refusal = ""  # why the last start did not come to anything
        self.refused = 0
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
        """Until it serves, or dies."""
        while not self.runs:
            try:
                await self.machine.run(self._serve(self.machine.boot()))
            except Crashed:
                return
            except (CannotStart, Fault, OSError) as error:
                self.refusal = str(error)
                self.refused += 1
                self.crash(power_loss=False)
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    async def _serve(self, ports: Ports) -> None:
        node = self.node = Node(ports, self._settings)
        await node.start()
        self.door = await open_door(node)

    def crash(self, *, power_loss: bool, between_events: bool = True) -> None:
        if not self.runs:
            return
        if self.witness is not None and between_events:
            self.witness.dies(self)
        self.machine.crash(power_loss=power_loss)
        self.node = self.door = None
        if self.witness is not None and power_loss:
            self.witness.lost_power(self)

    def crash_at_operation(self, number: int, *, power_loss: bool) -> None:
        """Crash just before the `number`-th write or change of names from now, in the midst of an event."""
        self.machine.storage.at_operation(number, lambda: self.crash(power_loss=power_loss, between_events=False))

    async def stop(self) -> bool:
        """As SIGTERM does; False: it died of something else on the way."""
        node, door = self.node, self.door
        if node is None or door is None:
            return False
        try:
            await self.machine.run(_stop(node, door))
        except Crashed:
            return False
        except asyncio.CancelledError:
            self.crash(power_loss=False)  # half stopped is no state to be left in
            raise
        self.crash(power_loss=False)
        return True


async def _stop(node: Node, door: KafkaDoor) -> None:
    door.close()
    await node.stop()
