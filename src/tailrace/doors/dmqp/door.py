"""The listener of the DMQP door: accepts connections, limits their number, and watches their time.

It uses TLS, with the broker's certificate (`ssl.keystore.location`) or one of its own, unless the settings ask for
plain connections. A changed certificate is loaded without a restart.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tailrace.doors.client_doors import CannotOpen
from tailrace.doors.dmqp.certificate import own_certificate
from tailrace.doors.dmqp.codec import Codec, Status
from tailrace.doors.dmqp.connection import DmqpConnection
from tailrace.doors.dmqp.queues import Queues
from tailrace.doors.dmqp.topics import Topics
from tailrace.doors.dmqp.trimming import Trimming
from tailrace.doors.door import CannotListen, DoorCounters
from tailrace.model.addresses import Address
from tailrace.model.dmqp_topics import parse_topic_table
from tailrace.model.limits import DMQP_READ_BYTES, DMQP_UNREAD_MAX_BYTES
from tailrace.model.listeners import DMQP_LISTENER
from tailrace.ports import BadCertificates, Listener, Tls, TlsFiles

if TYPE_CHECKING:
    from tailrace.doors.upstream import ClientHost

logger: Final = logging.getLogger(__name__)

CHECK_S: Final = 1.0  # between two looks at the time of all connections
CERTIFICATE_CHECK_S: Final = 10.0  # between two looks at the files


class DmqpDoor:
    """The connections of DMQP clients."""

    listener_name: Final = DMQP_LISTENER

    def __init__(self, host: "ClientHost") -> None:
        self._host = host
        settings = self._settings = host.settings
        self.clock = host.ports.clock
        self.codec = Codec(settings.dmqp_header_order)  # type: ignore[arg-type]
        self.socket_timeout_s = settings.dmqp_socket_timeout_ms / 1000
        self.idle_max_s = settings.connections_max_idle_ms / 1000
        self.read_buffer = memoryview(bytearray(DMQP_READ_BYTES))
        self.held_bytes = 0  # of payloads, for all connections
        self.is_open = False
        self.is_closing = False
        self._unread: dict[DmqpConnection, int] = {}  # bytes that clients leave unread; who has read last at the end
        self._unread_bytes = 0
        self.progressed = asyncio.Event()  # set when responses have left, or a connection is gone
        self.counters = DoorCounters()
        self._tls: Tls | None = None
        self._listener: Listener | None = None
        self._connections: dict[DmqpConnection, None] = {}
        self._topics = Topics(host.upstream, settings.dmqp_shards, parse_topic_table(settings.dmqp_topics))
        self.queues = Queues(host.upstream, self._topics)

    async def listen(self) -> None:
        settings, port = self._settings, self._settings.dmqp_port
        net = self._host.net(self.listener_name)
        try:
            self._tls = await self._load_tls()
            if self._tls is not None:
                self._host.add_certificates(self.listener_name, self._tls)
            self._listener = await net.listen(lambda: DmqpConnection(self), settings.host, port, self._tls)
        except BadCertificates as error:
            raise CannotOpen(f"the DMQP door cannot use its certificate: {error}") from None
        except OSError as error:
            raise CannotListen(self.listener_name, settings.host, port, "--dmqp-port", error) from None

    async def _load_tls(self) -> Tls | None:
        settings, ports = self._settings, self._host.ports
        if settings.dmqp_security_protocol == "PLAINTEXT":
            return None
        keystore = settings.ssl_keystore_location
        if not keystore:
            hosts = (settings.host, self._host.advertised_host)
            keystore = await own_certificate(ports.disk, settings.data_dir, hosts, ports.clock.wall_ms())
        files = TlsFiles(
            keystore=keystore,
            key_password=settings.ssl_key_password,
            truststore=settings.ssl_truststore_location,
            client_auth=settings.ssl_client_auth,  # type: ignore[arg-type]
        )
        return ports.net.load_tls(files)

    def open(self) -> None:
        self.is_open = True
        for connection in list(self._connections):
            connection.begin()
        self._host.spawn(self._watch())
        trimming = Trimming(self._host.upstream.cluster, self._topics, self._settings.dmqp_trim_delay_ms)
        self._host.spawn(trimming.run())

    @property
    def port(self) -> int:
        assert self._listener is not None
        return self._listener.port

    @property
    def endpoint(self) -> Address:
        return Address(self._host.advertised_host, self.port)

    def opened(self, connection: DmqpConnection) -> None:
        if self.is_closing:
            connection.close_quietly()
        elif len(self._connections) >= self._settings.max_connections:
            connection.close(f"{len(self._connections)} connections are open already (max.connections)")
        else:
            self._connections[connection] = None
            self.counters.connections += 1
            self.counters.accepted += 1

    def closed(self, connection: DmqpConnection) -> None:
        if connection in self._connections:
            del self._connections[connection]
            self.counters.connections -= 1
            self.progressed.set()

    def does_not_read(self, connection: DmqpConnection, unsent_bytes: int) -> None:
        """The client leaves more of its responses unread than there is room for, and gets no more of them. When all
        such clients together leave too much, those are cut off that have not read for the longest time."""
        self._unread_bytes += unsent_bytes - self._unread.pop(connection, 0)
        self._unread[connection] = unsent_bytes
        while self._unread_bytes > DMQP_UNREAD_MAX_BYTES:
            slowest = next(iter(self._unread))
            self.reads(slowest)
            slowest.close("all clients together leave too many responses unread")

    def reads(self, connection: DmqpConnection) -> None:
        self._unread_bytes -= self._unread.pop(connection, 0)

    def count(self, status: Status) -> None:
        self.counters.requests += 1
        if status not in (Status.OK, Status.ENODATA):
            self.counters.failed += 1

    @property
    def connections(self) -> tuple[DmqpConnection, ...]:
        return tuple(self._connections)

    def __len__(self) -> int:
        return len(self._connections)

    async def _watch(self) -> None:
        """One timer for all connections, and for the certificate."""
        looked_at = self.clock.monotonic()
        while not self.is_closing:
            await asyncio.sleep(CHECK_S)
            now = self.clock.monotonic()
            for connection in list(self._connections):
                connection.check_time(now)
            if now - looked_at >= CERTIFICATE_CHECK_S:
                looked_at = now
                self._reload_certificate()

    def _reload_certificate(self) -> None:
        if self._tls is None or not self._tls.has_changed():
            return
        try:
            self._tls.reload()
            logger.info("dmqp listener: loaded a new certificate")
        except BadCertificates as error:
            logger.error("dmqp listener: cannot load the new certificate, keeping the old one: %s", error)

    async def stop(self, grace_s: float) -> None:
        """Take no more requests, answer those that are under way for at most `grace_s`, then close everything."""
        self.is_closing = True
        self._close_listener()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while any(one.requests_in_flight for one in self._connections):
                    self.progressed.clear()
                    await self.progressed.wait()
        self.close()

    def close(self) -> None:
        self.is_closing = True
        self._close_listener()
        for connection in list(self._connections):
            connection.stop()

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
