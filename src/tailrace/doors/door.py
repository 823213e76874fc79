"""A door: a listener of a broker, with the protocol that it serves; and how the doors of a broker are opened.

A broker can register its endpoints only when its doors have their ports. So all doors listen first; then the broker
registers all endpoints, and waits until its own metadata has them; then all doors open. Until a door is open, the
requests of its clients wait: an earlier response would name no brokers and no topics. If one door cannot listen, all
are closed: a broker starts with all its listeners or not at all.
"""

import errno
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol

from tailrace.broker.services import Services
from tailrace.model.addresses import Address
from tailrace.model.settings import Settings
from tailrace.ports import Net, Ports


class Host(Protocol):
    """The broker, as far as a door needs it."""

    @property
    def services(self) -> Services: ...

    @property
    def ports(self) -> Ports: ...

    @property
    def settings(self) -> Settings: ...

    def net(self, listener: str) -> Net:
        """The network as this listener uses it: plain, or with TLS."""

    @property
    def advertised_host(self) -> str:
        """The host name that clients use to reach this broker."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background; if it fails, the broker fails."""

    async def register(self, endpoints: Mapping[str, Address]) -> None:
        """Register the addresses of this broker's listeners, by listener name."""


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


async def open_doors(host: Host, doors: Sequence[Door]) -> None:
    """Open all doors of a broker; when this returns, clients are served."""
    try:
        for door in doors:
            await door.listen()
        await host.register({door.listener_name: door.endpoint for door in doors})
    except BaseException:
        for door in doors:
            door.close()
        raise
    for door in doors:
        door.open()
