"""The only door to the world: clock, random, disk, net, offload, host.

Each module holds the protocol that the rest of Tailrace is written against, and the real thing.
The simulated ones live in `tailrace.testing`. Of the rooms of a broker nothing else may touch
time, randomness, sockets, threads or files: that is what makes a whole broker replayable from a seed.
"""

from tailrace.model.frozen import frozen
from tailrace.ports.clock import Clock, SystemClock
from tailrace.ports.disk import Disk, File, Lock
from tailrace.ports.host import Host, SystemHost
from tailrace.ports.net import Listener, Net, SystemNet
from tailrace.ports.offload import Offload, SystemOffload
from tailrace.ports.randomness import Random, SystemRandom
from tailrace.ports.system_disk import SystemDisk

__all__ = [
    "Clock",
    "Disk",
    "File",
    "Host",
    "Listener",
    "Lock",
    "Net",
    "Offload",
    "Ports",
    "Random",
    "system_ports",
]


@frozen
class Ports:
    """All a broker knows of the world. One value per broker."""

    clock: Clock
    random: Random
    disk: Disk
    net: Net
    offload: Offload
    host: Host


def system_ports() -> Ports:
    """The real world."""
    offload = SystemOffload()
    return Ports(
        clock=SystemClock(),
        random=SystemRandom(),
        disk=SystemDisk(offload),
        net=SystemNet(),
        offload=offload,
        host=SystemHost(),
    )
