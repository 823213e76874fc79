"""Which process of this machine listens at an address: what `cluster status` shows of brokers that run here.

Linux tells: `/proc/net/tcp` has a line for each listening socket with its number, and the descriptors of a process, as
far as we may look at them, name the sockets it holds. So a pid that is shown is that of a process that lives and
listens there now, however it was started. Elsewhere, and of brokers elsewhere, nothing is shown.
"""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

LISTENING: Final = "0A"
TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


def local_pids(addresses: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The process behind each address, where there is one to be seen."""
    local = [one for one in addresses if _is_here(one[0])]
    sockets = _listening_sockets() if local else {}
    pids = _holders([sockets[port] for _, port in local if port in sockets])
    return {one: pids[sockets[one[1]]] for one in local if sockets.get(one[1]) in pids}


def _is_here(host: str) -> bool:
    """Whether this machine has the address: only then can one bind to it."""
    with suppress(OSError):
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
            return True
    return False


def _listening_sockets() -> dict[int, str]:
    """The number of the listening socket, by port."""
    found: dict[int, str] = {}
    for table in TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING:
                    found.setdefault(int(words[1].rpartition(":")[2], 16), words[9])
    return found


def _holders(sockets: list[str]) -> dict[str, int]:
    """The first process that holds each of these sockets."""
    wanted = {f"socket:[{number}]": number for number in sockets}
    found: dict[str, int] = {}
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)) if wanted else ():
        with suppress(OSError):  # it ended, or belongs to somebody else
            for descriptor in os.scandir(process / "fd"):
                number = wanted.get(os.readlink(descriptor.path))
                if number is not None:
                    found.setdefault(number, int(process.name))
    return found
