"""What every door is, and how the doors of a broker are opened.

A door takes its ports before the cluster can be told about them. So all doors listen first; then the broker registers
with all its endpoints, and returns when its own metadata says so; then all doors open. Until a door is open its clients
wait: an answer from before would name no brokers and no topics. A door that cannot listen closes the others again: a
broker does not come up half.
"""

import errno
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol

from tailrace.broker.services import Services
from tailrace.model.addresses import Address
from tailrace.model.settings import Settings
from tailrace.ports import Ports


class Host(Protocol):
    """What a door needs of the broker that it belongs to."""

    @property
    def services(self) -> Services: ...

    @property
    def ports(self) -> Ports: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def advertised_host(self) -> str:
        """The host that clients are told."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background; if it fails, the broker fails."""

    async def register(self, endpoints: Mapping[str, Address]) -> None:
        """Tell the cluster where clients reach this broker, by the names of its listeners."""


class Door(Protocol):
    @property
    def listener_name(self) -> str:
        """What the listener is called in metadata and in the `ready` line."""

    @property
    def endpoint(self) -> Address:
        """Where clients reach it, once it listens."""

    async def listen(self) -> None:
        """Take the port, and let clients connect and wait; `CannotListen` when that fails."""

    def open(self) -> None:
        """Serve those who have waited, and all who come."""

    def close(self) -> None:
        """Stop listening, and close all connections."""


class CannotListen(Exception):
    """Why a door cannot take its port, in a sentence for the person who started the broker."""

    def __init__(self, listener_name: str, host: str, port: int, flag: str, error: OSError) -> None:
        super().__init__(f"the {listener_name} listener: {_reason(host, port, flag, error)}")


def _reason(host: str, port: int, flag: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another program.\n"
            f"Stop it, or give this broker another port with {flag} (0 picks a free one)."
        )
    if error.errno == errno.EACCES:
        return f"port {port} on {host} is not for this user.\nChoose one above 1023 with {flag}."
    return f"cannot listen on {host}: {error.strerror or error}.\nGive an address of this machine with --host."


async def open_doors(host: Host, doors: Sequence[Door]) -> None:
    """Open all doors of a broker; done when clients are served."""
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
