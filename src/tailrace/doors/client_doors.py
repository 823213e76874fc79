"""The table of the client doors; how those that are asked for are made, and how they stop.

A door is imported when it is asked for: one that is closed costs nothing. Client doors ask for no login, so they listen
on loopback unless the operator says `--insecure`.
"""

import asyncio
import logging
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from tailrace.model.addresses import is_loopback
from tailrace.model.frozen import frozen
from tailrace.model.listeners import DMQP_LISTENER, GRPC_LISTENER, HTTP_LISTENER
from tailrace.model.settings import CLOSED, Settings, row, rows

if TYPE_CHECKING:
    from tailrace.doors.door import ClientDoor
    from tailrace.doors.upstream import ClientHost

GRACE_S: Final = 5.0  # for the requests that are under way when a door stops
CLOSE_MAX_S: Final = 2.0  # after which a door or its upstream that does not stop is left alone
logger: Final = logging.getLogger(__name__)


class CannotOpen(Exception):
    """A door cannot be opened as asked; the message says which, why, and what to do."""


@frozen
class ClientDoorKind:
    listener: str  # its name in the metadata and in the `ready` line
    title: str  # what people call it
    setting: str  # of its port
    extra: str  # of the package, with the libraries that it needs
    libraries: tuple[str, ...]  # their modules
    module: str
    door: str  # the class in that module

    @property
    def flag(self) -> str:
        flag = row(rows()[self.setting]).flag
        assert flag is not None
        return flag

    def port(self, settings: Settings) -> int:
        return int(getattr(settings, rows()[self.setting].name))

    @property
    def is_installed(self) -> bool:
        """Whether its libraries are there; they are not imported."""
        return all(find_spec(one) is not None for one in (*self.libraries, self.module))

    def load(self) -> Any:
        """Import the door and return its class. `CannotOpen` if its libraries are missing."""
        try:
            module = import_module(self.module)
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in self.libraries:
                raise
            raise CannotOpen(
                f"the {self.title} door ({self.flag}) needs more packages: pip install 'tailrace[{self.extra}]'"
            ) from None
        return getattr(module, self.door)


CLIENT_DOORS: Final = (
    ClientDoorKind(
        listener=HTTP_LISTENER, title="HTTP", setting="http.port", extra="http", libraries=("httptools",),
        module="tailrace.doors.http", door="HttpDoor",
    ),
    ClientDoorKind(
        listener=GRPC_LISTENER, title="gRPC", setting="grpc.port", extra="grpc", libraries=("grpc", "google"),
        module="tailrace.doors.grpc.door", door="GrpcDoor",
    ),
    ClientDoorKind(
        listener=DMQP_LISTENER, title="DMQP", setting="dmqp.port", extra="dmqp", libraries=("cryptography",),
        module="tailrace.doors.dmqp", door="DmqpDoor",
    ),
)  # fmt: skip


def asked_for(settings: Settings) -> Sequence[ClientDoorKind]:
    """The doors that these settings ask for."""
    return [one for one in CLIENT_DOORS if one.port(settings) != CLOSED]


def check_can_open(settings: Settings) -> None:
    """Import all doors that are asked for. `CannotOpen` if one cannot be served, or must not be on that address."""
    for kind in asked_for(settings):
        if not (settings.insecure or is_loopback(settings.host)):
            raise CannotOpen(
                f"the {kind.title} door ({kind.flag}) asks for no login, and would listen on {settings.host}, for "
                "others than this machine.\nUse a loopback address, such as --host 127.0.0.1, or allow it: --insecure."
            )
        kind.load()


def make_doors(host: "ClientHost") -> "list[ClientDoor]":
    """The doors that the host's settings ask for; they do not listen yet."""
    return [kind.load()(host) for kind in asked_for(host.settings)]


async def stop_doors(host: "ClientHost", doors: "Sequence[ClientDoor]") -> None:
    """Stop all doors at the same time, each when its requests have ended, and then their client. None can hold up the
    process for longer than `GRACE_S` and two times `CLOSE_MAX_S`."""
    stopping = asyncio.gather(*(door.stop(GRACE_S) for door in doors), return_exceptions=True)
    try:
        async with asyncio.timeout(GRACE_S + CLOSE_MAX_S):
            for door, failure in zip(doors, await stopping, strict=True):
                if isinstance(failure, BaseException):
                    logger.error("the %s listener did not stop cleanly", door.listener_name, exc_info=failure)
        async with asyncio.timeout(CLOSE_MAX_S):
            await host.upstream.close()
    except TimeoutError:
        logger.warning("the doors did not stop in time, abandoning the requests under way")
    for door in doors:
        door.close()
