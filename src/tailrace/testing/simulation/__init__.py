"""A world in a box: event loop, network, disks, clocks and crashes, all from one seed.

`World` holds the loop and the machines; a booted machine gives the `Ports` that a real broker takes. See `world.py`
for how to begin, `machine.py` for crashes, `storage.py` for what disks do, `network.py` for cuts and resets.
"""

from tailrace.testing.simulation.chance import Delay, Odds
from tailrace.testing.simulation.failures import Crashed, Dead, Deadlock, RanTooLong, RealWorld, SimulationFailed
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.machine import Machine
from tailrace.testing.simulation.network import Network
from tailrace.testing.simulation.storage import Storage
from tailrace.testing.simulation.world import World

__all__ = [
    "Crashed",
    "Dead",
    "Deadlock",
    "Delay",
    "Machine",
    "Network",
    "Odds",
    "RanTooLong",
    "RealWorld",
    "SimLoop",
    "SimulationFailed",
    "Storage",
    "World",
]
