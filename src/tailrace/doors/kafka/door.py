"""The listener of the Kafka door: accepts connections, limits their number, and closes idle ones."""

import asyncio
import logging
from typing import Final

from tailrace.broker.services.time_slices import SliceQueue
from tailrace.doors.broker_host import Host
from tailrace.doors.door import CannotListen, open_doors
from tailrace.doors.kafka.connection import KafkaConnection
from tailrace.doors.kafka.fetch_sessions import FetchSessions
from tailrace.doors.kafka.forwarding import ForwardedRequests
from tailrace.doors.kafka.handlers.topics.encoded_topics import EncodedTopics
from tailrace.doors.kafka.registry import APIS
from tailrace.doors.kafka.share_sessions import ShareSessions
from tailrace.model.addresses import Address
from tailrace.model.limits import ANSWERS_UNSENT_MAX_BYTES, FETCH_ANSWER_MAX_BYTES, FETCH_ANSWER_SCARCE_BYTES
from tailrace.model.listeners import KAFKA_LISTENER
from tailrace.ports import Listener

logger: Final = logging.getLogger(__name__)

WARNINGS_KEPT_MAX: Final = 100


class KafkaDoor:
    """The connections of Kafka clients to one broker."""

    listener_name: Final = KAFKA_LISTENER

    def __init__(self, host: Host) -> None:
        self._host = host
        self.services = host.services
        self.settings = host.settings
        self.clock = host.ports.clock
        self.apis = APIS
        self.is_open = False  # while False, requests wait
        self._closed = False
        self.fetch_sessions = FetchSessions(host.ports.random, host.ports.clock)
        self.share_sessions = ShareSessions(host.services.queues, host.settings.group_share_max_share_sessions)
        self.encoded_topics = EncodedTopics(host.services.topics)
        self.slices = SliceQueue()
        self._connections: dict[KafkaConnection, None] = {}
        self.unsent_bytes = 0  # of responses in the write buffers of clients that do not read
        self._listener: Listener | None = None
        self._warned: dict[str, None] = {}
        self._accepted = 0
        self._forwarded = ForwardedRequests(self)

    def next_connection_number(self) -> int:
        """The number for a new connection; a later one has a higher number."""
        self._accepted += 1
        return self._accepted

    async def listen(self) -> None:
        host, port = self.settings.host, self.settings.kafka_port
        try:
            self._listener = await self._host.net(self.listener_name).listen(lambda: KafkaConnection(self), host, port)
        except OSError as error:
            raise CannotListen(self.listener_name, host, port, "--kafka-port", error) from None
        self.services.admin.show_door(
            self.listener_name, lambda: {"connections": len(self), "accepted": self._accepted}
        )
        self.services.admin.serve_forwarded_with(self._forwarded.serve)
        self.services.cluster_net.serve_clients_with(lambda: KafkaConnection(self))
        self._host.spawn(self.close_idle())

    def open(self) -> None:
        self.is_open = True
        for connection in list(self._connections):
            connection.resume_requests()

    @property
    def port(self) -> int:
        assert self._listener is not None
        return self._listener.port

    @property
    def endpoint(self) -> Address:
        return Address(self._host.advertised_host, self.port)

    def opened(self, connection: KafkaConnection) -> None:
        if self._closed:
            connection.close_quietly()  # through memory or the client lane: the listener accepts no more
            return
        if len(self._connections) >= self.settings.max_connections:
            connection.close(f"{len(self._connections)} connections are open already (max.connections)")
            return
        self._connections[connection] = None

    def closed(self, connection: KafkaConnection) -> None:
        self._connections.pop(connection, None)

    @property
    def answer_max_bytes(self) -> int:
        """How large a Fetch response may be: small, while unread responses of other clients take much memory."""
        return FETCH_ANSWER_MAX_BYTES if self.unsent_bytes < ANSWERS_UNSENT_MAX_BYTES else FETCH_ANSWER_SCARCE_BYTES

    def warn_once(self, text: str) -> None:
        """Log a warning that clients would trigger again and again: each text once in this run, and not too many."""
        if text not in self._warned and len(self._warned) < WARNINGS_KEPT_MAX:
            self._warned[text] = None
            logger.warning("%s", text)

    def __len__(self) -> int:
        return len(self._connections)

    async def close_idle(self) -> None:
        """Close connections that were idle for longer than `connections.max.idle.ms`, in an endless loop."""
        idle_max_s = self.settings.connections_max_idle_ms / 1000
        while True:
            await asyncio.sleep(min(idle_max_s / 2, 60.0))
            now = self.clock.monotonic()
            for connection in list(self._connections):
                if connection.silent_for(now) > idle_max_s:
                    connection.close(f"it was idle for {idle_max_s:.0f} s (connections.max.idle.ms)")

    def close(self) -> None:
        self._closed = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.close_quietly()


async def open_door(host: Host) -> KafkaDoor:
    """Open the Kafka door as the only door of a broker; when this returns, clients are served."""
    door = KafkaDoor(host)
    await open_doors(host, [door])
    return door
