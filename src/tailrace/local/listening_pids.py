"""Which process of this machine listens at an address: the pids that `cluster status` shows.

On Linux, `/proc/net/tcp` has the inode of each listening socket, and `/proc/PID/fd` the inodes of the sockets that a
process has open. So the pid is that of a process that listens there now, however it was started. There is none for a
process of another user, whose descriptors we may not read, for a broker of another machine, or on another system.
"""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

LISTENING: Final = "0A"
TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


def listening_pids(addresses: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The pid by address, for those addresses where one is found."""
    local = [one for one in addresses if _is_local(one[0])]
    sockets = _listening_sockets() if local else {}
    pids = _holders([sockets[port] for _, port in local if port in sockets])
    return {one: pids[sockets[one[1]]] for one in local if sockets.get(one[1]) in pids}


def _is_local(host: str) -> bool:
    """Whether the address is one of this machine: only then can a socket be bound to it."""
    with suppress(OSError):
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
            return True
    return False


def _listening_sockets() -> dict[int, str]:
    """The inode of the listening socket, by port."""
    found: dict[int, str] = {}
    for table in TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING:
                    found.setdefault(int(words[1].rpartition(":")[2], 16), words[9])
    return found


def _holders(sockets: list[str]) -> dict[str, int]:
    """By socket inode, the first process that has it open."""
    wanted = {f"socket:[{inode}]": inode for inode in sockets}
    found: dict[str, int] = {}
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)) if wanted else ():
        with suppress(OSError):  # the process ended, or belongs to another user
            for descriptor in os.scandir(process / "fd"):
                inode = wanted.get(os.readlink(descriptor.path))
                if inode is not None:
                    found.setdefault(inode, int(process.name))
    return found
