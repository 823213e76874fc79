"""The door itself: it listens, counts its connections, and closes those that fall silent.

It listens before the cluster can be told at which port. Until this broker's own metadata says that it is there,
requests wait: an answer from before would name no brokers and no topics, and clients would forget what they know.
"""

import asyncio
import logging
from functools import partial
from typing import Final

from tailrace.broker.node import Node
from tailrace.doors.kafka.connection import KafkaConnection
from tailrace.doors.kafka.forwarding import serve_forwarded
from tailrace.doors.kafka.handlers.topics.encoded_topics import EncodedTopics
from tailrace.doors.kafka.time_slices import Turns
from tailrace.model.limits import ANSWERS_UNSENT_MAX_BYTES, FETCH_ANSWER_MAX_BYTES, FETCH_ANSWER_SCARCE_BYTES
from tailrace.ports import Listener

logger: Final = logging.getLogger(__name__)

WARNINGS_KEPT_MAX: Final = 100


class KafkaDoor:
    """Connections of Kafka clients to one node. Closing it closes them, too."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.is_open = False  # requests are answered
        self.encoded_topics = EncodedTopics(node)
        self.turns = Turns()
        self._connections: dict[KafkaConnection, None] = {}
        self.unsent_bytes = 0  # answers that clients do not take in, as far as they were seen
        self._listener: Listener | None = None
        self._warned: dict[str, None] = {}
        self._accepted = 0

    def next_number(self) -> int:
        self._accepted += 1
        return self._accepted

    async def listen(self) -> None:
        settings = self.node.settings
        self._listener = await self.node.ports.net.listen(
            lambda: KafkaConnection(self), settings.host, settings.kafka_port
        )
        self.node.kafka_port = self._listener.port
        self.node.calls.serve_forwarded = partial(serve_forwarded, self.node)
        self.node.spawn(self.close_silent())

    def open(self) -> None:
        """Answer those who have waited, and all who come."""
        self.is_open = True
        for connection in list(self._connections):
            connection.go_on()

    @property
    def port(self) -> int:
        assert self._listener is not None
        return self._listener.port

    def opened(self, connection: KafkaConnection) -> None:
        if len(self._connections) >= self.node.settings.max_connections:
            connection.close(f"there are {len(self._connections)} connections already, max.connections allows no more")
            return
        self._connections[connection] = None

    def closed(self, connection: KafkaConnection) -> None:
        self._connections.pop(connection, None)

    @property
    def answer_max_bytes(self) -> int:
        """How large a Fetch's answer may be: small, while clients that do not read hold much of our memory."""
        return FETCH_ANSWER_MAX_BYTES if self.unsent_bytes < ANSWERS_UNSENT_MAX_BYTES else FETCH_ANSWER_SCARCE_BYTES

    def warn_once(self, text: str) -> None:
        """Log something that clients would make us repeat; once each, and not for ever."""
        if text not in self._warned and len(self._warned) < WARNINGS_KEPT_MAX:
            self._warned[text] = None
            logger.warning("%s", text)

    def __len__(self) -> int:
        return len(self._connections)

    async def close_silent(self) -> None:
        """Close connections that have sent nothing for longer than `connections.max.idle.ms`, for ever."""
        idle_max_s = self.node.settings.connections_max_idle_ms / 1000
        while True:
            await asyncio.sleep(min(idle_max_s / 2, 60.0))
            now = self.node.ports.clock.monotonic()
            for connection in list(self._connections):
                if connection.silent_for(now) > idle_max_s:
                    connection.close(f"it was silent for {idle_max_s:.0f} s")

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.close_quietly()


async def open_door(node: Node) -> KafkaDoor:
    """Listen on the node's host and Kafka port; done when clients are served."""
    door = KafkaDoor(node)
    await door.listen()
    try:
        await node.register()
    except BaseException:
        door.close()
        raise
    door.open()
    return door
