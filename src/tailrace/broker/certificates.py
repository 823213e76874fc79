"""The TLS certificates of the listeners of a broker or a gateway: loaded at the start, and again when files change.

A listener with TLS listens and connects through its own `Net`. A reload that fails leaves the old certificates in use:
connections go on as before, and the log names the file and the reason.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.model.listeners import LISTENERS, PEER_LISTENER, security_protocol
from tailrace.model.settings import CLOSED, Settings
from tailrace.ports import BadCertificates, Listener, Net, Ports, Tls, TlsFiles
from tailrace.ports.net import Factory, P

logger: Final = logging.getLogger(__name__)

CHECK_S: Final = 10.0  # between two looks at the files
DAY_S: Final = 24 * 3600.0
EXPIRY_WARNING_S: Final = 14 * DAY_S


class TlsNet:
    """A `Net` whose connections use TLS."""

    def __init__(self, net: Net, tls: Tls) -> None:
        self._net = net
        self._tls = tls

    def load_tls(self, files: TlsFiles) -> Tls:
        return self._net.load_tls(files)

    async def listen(self, factory: Factory, host: str, port: int, tls: Tls | None = None) -> Listener:
        return await self._net.listen(factory, host, port, tls or self._tls)

    async def connect(self, factory: Callable[[], P], host: str, port: int, tls: Tls | None = None) -> P:
        return await self._net.connect(factory, host, port, tls or self._tls)


class Certificates:
    def __init__(self, ports: Ports, settings: Settings, listeners: Sequence[str] = LISTENERS) -> None:
        """Load the certificates of those listeners that use TLS; BadCertificates if they cannot be used."""
        self._net = ports.net
        self._clock = ports.clock
        self._keystore = settings.ssl_keystore_location
        self._by_listener: dict[str, Tls] = {
            listener: ports.net.load_tls(_files(settings, listener)) for listener in _with_tls(settings, listeners)
        }
        self._by_door: dict[str, Tls] = {}  # that doors have loaded, and watch themselves
        self._warned_at = -DAY_S

    def net(self, listener: str) -> Net:
        """The net for a listener, and for connections to the same listener of other brokers."""
        tls = self._by_listener.get(listener)
        return self._net if tls is None else TlsNet(self._net, tls)

    def tls(self, listener: str) -> Tls | None:
        """For a listener that has sockets of its own; None if it is plain."""
        return self._by_listener.get(listener)

    def add(self, listener: str, tls: Tls) -> None:
        """Reload these, too, which a door has loaded itself."""
        self._by_door[listener] = tls

    def reload(self) -> None:
        """Load the files again, for new connections. Files that cannot be used are logged, and change nothing."""
        for listener, tls in (self._by_listener | self._by_door).items():
            try:
                tls.reload()
                logger.info("loaded the certificates of the %s listener again", listener)
            except BadCertificates as error:
                logger.error("the certificates of the %s listener stay as they were: %s", listener, error)

    async def watch(self) -> None:
        """Reload when a file has changed, and warn before a certificate expires, in an endless loop."""
        while self._by_listener:
            self._warn_of_expiry()
            await asyncio.sleep(CHECK_S)
            if any(tls.has_changed() for tls in self._by_listener.values()):
                self.reload()

    def _warn_of_expiry(self) -> None:
        left_s = min(tls.expires_at for tls in self._by_listener.values()) - self._clock.wall_ms() / 1000
        now = self._clock.monotonic()
        if left_s < EXPIRY_WARNING_S and now - self._warned_at >= DAY_S:
            self._warned_at = now
            state = f"expires in {left_s / DAY_S:.1f} days" if left_s > 0 else "has expired"
            logger.warning("the certificate in %s %s: replace the file", self._keystore, state)


def uses_tls(settings: Settings, listeners: Sequence[str] = LISTENERS) -> bool:
    """Whether any of these listeners uses TLS, or that of DMQP, which has a setting of its own."""
    dmqp = settings.dmqp_port != CLOSED and settings.dmqp_security_protocol == "SSL"
    return dmqp or bool(_with_tls(settings, listeners))


def _with_tls(settings: Settings, listeners: Sequence[str]) -> list[str]:
    mapping = settings.listener_security_protocol_map
    return [listener for listener in listeners if security_protocol(mapping, listener) == "SSL"]


def _files(settings: Settings, listener: str) -> TlsFiles:
    return TlsFiles(
        keystore=settings.ssl_keystore_location,
        key_password=settings.ssl_key_password,
        truststore=settings.ssl_truststore_location,
        client_auth="required" if listener == PEER_LISTENER else settings.ssl_client_auth,  # type: ignore[arg-type]
        checks_hostname=settings.ssl_endpoint_identification_algorithm == "https",
    )
