"""The table of the client doors. A door is imported when it is asked for, and what is closed is not imported at all."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from tailrace.model.frozen import frozen
from tailrace.model.listeners import DMQP_LISTENER, GRPC_LISTENER, HTTP_LISTENER
from tailrace.model.settings import Settings, row, rows

if TYPE_CHECKING:
    from tailrace.doors.door import ClientDoor
    from tailrace.doors.upstream import ClientHost

CLOSED: Final = -1  # the port of a door that is not asked for


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
        return all(find_spec(one) is not None for one in self.libraries)

    def make(self, host: "ClientHost") -> "ClientDoor":
        try:
            module = import_module(self.module)
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in self.libraries:
                raise
            raise CannotOpen(
                f"the {self.title} door needs {' and '.join(self.libraries)}: pip install 'tailrace[{self.extra}]'"
            ) from None
        door: ClientDoor = getattr(module, self.door)(host)
        return door


CLIENT_DOORS: Final = (
    ClientDoorKind(
        listener=HTTP_LISTENER, title="HTTP", setting="http.port", extra="http", libraries=("httptools",),
        module="tailrace.doors.http", door="HttpDoor",
    ),
    ClientDoorKind(
        listener=GRPC_LISTENER, title="gRPC", setting="grpc.port", extra="grpc", libraries=("grpc", "google"),
        module="tailrace.doors.grpc", door="GrpcDoor",
    ),
    ClientDoorKind(
        listener=DMQP_LISTENER, title="DMQP", setting="dmqp.port", extra="dmqp", libraries=("cryptography",),
        module="tailrace.doors.dmqp", door="DmqpDoor",
    ),
)  # fmt: skip


def asked_for(settings: Settings) -> Sequence[ClientDoorKind]:
    """The doors that these settings ask for."""
    return [one for one in CLIENT_DOORS if one.port(settings) != CLOSED]
