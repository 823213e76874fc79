"""A door: a listener of a process, with the protocol that it serves; and how the doors of a process open and close.

A broker can register its endpoints only when its doors have their ports. So all doors listen first; then the broker
registers all endpoints, and waits until its own metadata has them; then all doors open. Until a door is open, the
requests of its clients wait: an earlier response would name no brokers and no topics. If one door cannot listen, all
are closed: a broker starts with all its listeners or not at all. A gateway opens its doors the same way.

The Kafka door uses the services of its broker. All others are client doors: clients of the log, which use
`upstream`.
"""

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tailrace.model.addresses import Address


class Registrar(Protocol):
    async def register(self, endpoints: Mapping[str, Address]) -> None:
        """Make known where the doors of this process listen, by listener name."""


class Door(Protocol):
    @property
    def listener_name(self) -> str:
        """The name of the listener in the metadata and in the `ready` line."""

    @property
    def endpoint(self) -> Address:
        """The advertised address, once the door listens."""

    async def listen(self) -> None:
        """Bind the port; clients can connect, but their requests wait. Raises `CannotListen`."""

    def open(self) -> None:
        """Serve requests, those that have waited first."""

    def close(self) -> None:
        """Stop listening, and close all connections."""


@dataclass(slots=True)
class DoorCounters:
    """What a door has done since it opened; `tailrace doors` shows it."""

    connections: int = 0  # open now
    accepted: int = 0  # connections, in all
    requests: int = 0  # answered, in all
    failed: int = 0  # of these, answered with an error
    received_bytes: int = 0
    sent_bytes: int = 0


class ClientDoor(Door, Protocol):
    """A door that is a client of the log."""

    @property
    def counters(self) -> DoorCounters: ...

    async def stop(self, grace_s: float) -> None:
        """Stop listening, let requests that are under way end for at most `grace_s`, then close all connections."""


class CannotListen(Exception):
    """A door cannot bind its port; the message tells the operator why."""

    def __init__(self, listener_name: str, host: str, port: int, flag: str, error: OSError) -> None:
        super().__init__(f"the {listener_name} listener: {_reason(host, port, flag, error)}")


def _reason(host: str, port: int, flag: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another program.\n"
            f"Stop it, or choose another port with {flag} (0 picks a free one)."
        )
    if error.errno == errno.EACCES:
        return f"this user may not bind port {port} on {host}.\nChoose a port above 1023 with {flag}."
    return f"cannot listen on {host}: {error.strerror or error}.\nChoose an address of this machine with --host."


async def open_doors(registrar: Registrar, doors: Sequence[Door]) -> None:
    """Open all doors of a process; when this returns, clients are served."""
    try:
        for door in doors:
            await door.listen()
        await registrar.register({door.listener_name: door.endpoint for door in doors})
    except BaseException:
        for door in doors:
            door.close()
        raise
    for door in doors:
        door.open()
