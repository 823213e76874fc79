"""The broker, as far as its doors need it."""

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from tailrace.broker.services import Services
from tailrace.model.addresses import Address
from tailrace.model.settings import Settings
from tailrace.ports import Net, Ports, Tls


class Host(Protocol):
    @property
    def services(self) -> Services: ...

    @property
    def ports(self) -> Ports: ...

    @property
    def settings(self) -> Settings: ...

    def net(self, listener: str) -> Net:
        """The network as this listener uses it: plain, or with TLS."""

    def tls(self, listener: str) -> Tls | None:
        """The certificates of a listener that has sockets of its own; None if it is plain."""

    def add_certificates(self, listener: str, tls: Tls) -> None:
        """Reload these with those of the other listeners, when the process is told to."""

    @property
    def advertised_host(self) -> str:
        """The host name that clients use to reach this broker."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background; if it fails, the broker fails."""

    async def register(self, endpoints: Mapping[str, Address]) -> None:
        """Register the addresses of this broker's listeners, by listener name."""
