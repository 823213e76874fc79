"""TCP connections, as asyncio transports for a `BufferedProtocol`, plain or with TLS.

A TLS handshake takes most of a millisecond of the event loop, and a client that sends nothing costs a connection. So a
listener with TLS accepts connections itself: at most `HANDSHAKES_MAX` handshakes are under way, further clients wait in
the backlog of the socket. While they wait, a handshake that has lasted for `HANDSHAKE_SLOW_S` makes room for the next.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from tailrace.ports.tls import ClientTls, SystemTls, Tls, TlsFiles

logger: Final = logging.getLogger(__name__)

P = TypeVar("P", bound=asyncio.BaseProtocol)
Factory = Callable[[], asyncio.BaseProtocol]

BACKLOG_MAX: Final = 4096
HANDSHAKES_MAX: Final = 64
HANDSHAKE_MAX_S: Final = 10.0
HANDSHAKE_SLOW_S: Final = 1.0  # under pressure, a handshake that takes longer makes room for another
SHUTDOWN_MAX_S: Final = 5.0  # for the other side's close_notify
ACCEPT_RETRY_S: Final = 1.0  # after `accept` failed, as it does when the process has no descriptor left
LOG_INTERVAL_S: Final = 10.0  # between two log lines about failed handshakes


class Listener(Protocol):
    @property
    def port(self) -> int: ...

    def close(self) -> None:
        """Accept no more connections; open ones stay open."""
        ...


class Net(Protocol):
    def load_tls(self, files: TlsFiles) -> Tls:
        """Load and check certificates. BadCertificates if they cannot be used."""
        ...

    async def listen(self, factory: Factory, host: str, port: int, tls: Tls | None = None) -> Listener:
        """Accept connections; port 0: any free port. OSError if the address is not available."""
        ...

    async def connect(self, factory: Callable[[], P], host: str, port: int, tls: Tls | None = None) -> P:
        """Open a connection and return its protocol. OSError if it cannot be opened."""
        ...


class SystemListener:
    def __init__(self, port: int, servers: list[asyncio.Server]) -> None:
        self.port = port
        self._servers = servers

    def close(self) -> None:
        for server in self._servers:
            server.close()


class TlsListener:
    def __init__(self, sockets: list[socket.socket], factory: Factory, tls: SystemTls) -> None:
        self._sockets = sockets
        self.port = int(sockets[0].getsockname()[1])
        self._factory = factory
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[None], float] = {}  # by when they began, the oldest first
        self._accepting = False
        self._closed = False
        self._resuming: asyncio.TimerHandle | None = None
        self._failed = 0  # handshakes since the last log line
        self._logged_at = -LOG_INTERVAL_S
        self._accept_more()

    def close(self) -> None:
        self._closed = True
        self._pause()
        for handshake in list(self._handshakes):
            handshake.cancel()
        for listening in self._sockets:
            listening.close()

    # Accepting

    def _accept_more(self) -> None:
        if self._closed or self._accepting or len(self._handshakes) >= HANDSHAKES_MAX:
            return
        self._accepting = True
        for listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def _pause(self, resume_after_s: float | None = None) -> None:
        """Accept no more until a handshake has ended, or for this long."""
        if self._accepting:
            self._accepting = False
            for listening in self._sockets:
                self._loop.remove_reader(listening)
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        if resume_after_s is not None:
            self._resuming = self._loop.call_later(resume_after_s, self._resume)

    def _resume(self) -> None:
        self._resuming = None
        if len(self._handshakes) >= HANDSHAKES_MAX:
            next(iter(self._handshakes)).cancel()
        else:
            self._accept_more()

    def _accept(self, listening: socket.socket) -> None:
        while self._accepting:
            try:
                connection, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.error("cannot accept connections on port %d: %s", self.port, error.strerror)
                self._pause(ACCEPT_RETRY_S)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._shake_hands(connection, f"{address[0]}:{address[1]}"))
            self._handshakes[task] = self._loop.time()
            task.add_done_callback(self._handshake_done)
            if len(self._handshakes) >= HANDSHAKES_MAX:
                oldest_s = self._loop.time() - next(iter(self._handshakes.values()))
                self._pause(max(HANDSHAKE_SLOW_S - oldest_s, 0.0))

    async def _shake_hands(self, connection: socket.socket, client: str) -> None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self._loop.connect_accepted_socket(
                self._factory,
                connection,
                ssl=self._tls.server,
                ssl_handshake_timeout=HANDSHAKE_MAX_S,
                ssl_shutdown_timeout=SHUTDOWN_MAX_S,
            )
        except OSError as error:
            connection.close()
            self._log_failure(client, error)
        except asyncio.CancelledError:  # the loop closes the connection: its transport may be live already
            self._log_failure(client, TimeoutError("it took too long while others waited"))

    def _handshake_done(self, task: "asyncio.Task[None]") -> None:
        del self._handshakes[task]
        if len(self._handshakes) < HANDSHAKES_MAX and self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        self._accept_more()

    def _log_failure(self, client: str, error: OSError) -> None:
        self._failed += 1
        now = self._loop.time()
        if now - self._logged_at >= LOG_INTERVAL_S and not self._closed:
            more = f"; {self._failed - 1} others since the last such line" if self._failed > 1 else ""
            logger.warning("no TLS with client %s on port %d: %s%s", client, self.port, tls_problem(error), more)
            self._logged_at, self._failed = now, 0


class SystemNet:
    def load_tls(self, files: TlsFiles) -> SystemTls:
        return SystemTls(files)

    async def listen(self, factory: Factory, host: str, port: int, tls: Tls | None = None) -> Listener:
        sockets = await _bind(host, port)
        if tls is not None:
            assert isinstance(tls, SystemTls)
            return TlsListener(sockets, factory, tls)
        loop, bound_port = asyncio.get_running_loop(), int(sockets[0].getsockname()[1])
        servers = [await loop.create_server(factory, sock=one, backlog=BACKLOG_MAX) for one in sockets]
        return SystemListener(bound_port, servers)

    async def connect(self, factory: Callable[[], P], host: str, port: int, tls: Tls | None = None) -> P:
        loop = asyncio.get_running_loop()
        if tls is None:
            _, protocol = await loop.create_connection(factory, host, port)
            return protocol
        assert isinstance(tls, SystemTls | ClientTls)
        try:
            _, protocol = await loop.create_connection(
                factory,
                host,
                port,
                ssl=tls.client,
                ssl_handshake_timeout=HANDSHAKE_MAX_S,
                ssl_shutdown_timeout=SHUTDOWN_MAX_S,
            )
        except ssl.SSLError as error:
            raise ConnectionError(f"no TLS with {host}:{port}: {tls_problem(error)}") from error
        return protocol


async def _bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets for each address of the host that this machine has, all on the same port.

    `localhost` may have an address of IPv6 where that is off. A port that is in use is an error on any of them:
    clients would reach this broker or another program, as it happens.
    """
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    missing: dict[str, OSError] = {}  # by address
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            shared_port = sockets[0].getsockname()[1] if sockets else port
            try:
                sockets.append(_listening(family, kind, protocol, (address[0], shared_port, *address[2:])))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing[str(address[0])] = error
    except BaseException:
        for listening in sockets:
            listening.close()
        raise
    if not sockets:
        reasons = "; ".join(f"{name}: {why.strerror}" for name, why in missing.items())
        raise OSError(next(iter(missing.values())).errno, reasons)
    for name, why in missing.items():
        logger.warning("not listening on %s, an address of %s: %s", name, host, why.strerror)
    return sockets


def _listening(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(BACKLOG_MAX)
    except BaseException:
        listening.close()
        raise
    return listening


def tls_problem(error: OSError) -> str:
    """Why a handshake failed, for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return HANDSHAKE_PROBLEMS.get(error.reason or "", error.reason or str(error))
    return str(error) or "the connection was closed"


HANDSHAKE_PROBLEMS: Final = {
    "WRONG_VERSION_NUMBER": "the other side does not use TLS (is its security.protocol PLAINTEXT?)",
    "HTTP_REQUEST": "the other side sends HTTP",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate, and ssl.client.auth is required",
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust our certificate (is our authority in its truststore?)",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the other side refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the other side refuses our certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the other side requires a certificate of ours",
    "UNSUPPORTED_PROTOCOL": "the other side offers only TLS versions before 1.2",
    "NO_SHARED_CIPHER": "there is no cipher that both sides support",
}


def give_up_after(transport: asyncio.BaseTransport, seconds: float) -> None:
    """Close a connection whose sent data is not acknowledged for this long (TCP_USER_TIMEOUT).

    By default TCP retransmits for a quarter of an hour, at growing intervals: after a network failure two hosts could
    stay unable to communicate for as long again as the failure lasted. Without that option or a socket, this does
    nothing.
    """
    found = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if found is not None and option is not None:
        found.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))


KEEPALIVE_PROBES: Final = 3


def keep_alive(transport: asyncio.BaseTransport, seconds: float) -> None:
    """Let the operating system ask an idle peer whether it is still there, and close the connection when it has been
    gone for this long. Without a socket, this does nothing."""
    found = transport.get_extra_info("socket")
    if found is None:
        return
    interval_s = max(int(seconds / (KEEPALIVE_PROBES + 1)), 1)
    timing = {"TCP_KEEPIDLE": interval_s, "TCP_KEEPINTVL": interval_s, "TCP_KEEPCNT": KEEPALIVE_PROBES}
    with suppress(OSError):  # the connection may be lost already, which the protocol is told in its own way
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in timing.items():
            if hasattr(socket, name):  # macOS lacks the first
                found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
