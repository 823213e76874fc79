"""Ports to the outside world: clock, random numbers, disk, network, threads and processes, host.

Each module has the protocol that the rest of Tailrace uses, and its real implementation; `tailrace.testing` has the
simulated ones. Of the rooms of a broker no other code may access time, randomness, sockets, threads or files: so a
whole broker can be replayed from a seed.
"""

from tailrace.model.frozen import frozen
from tailrace.ports.clock import Clock, SystemClock
from tailrace.ports.disk import Disk, File, Lock
from tailrace.ports.host import Host, SystemHost
from tailrace.ports.net import Listener, Net, SystemNet
from tailrace.ports.offload import Offload, SystemOffload
from tailrace.ports.randomness import Random, SystemRandom
from tailrace.ports.system_disk import SystemDisk
from tailrace.ports.tls import BadCertificates, Tls, TlsFiles

__all__ = [
    "BadCertificates",
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
    "Tls",
    "TlsFiles",
    "system_ports",
]


@frozen
class Ports:
    """All ports of one broker."""

    clock: Clock
    random: Random
    disk: Disk
    net: Net
    offload: Offload
    host: Host


def system_ports() -> Ports:
    """The real implementations."""
    offload = SystemOffload()
    return Ports(
        clock=SystemClock(),
        random=SystemRandom(),
        disk=SystemDisk(offload),
        net=SystemNet(),
        offload=offload,
        host=SystemHost(),
    )
