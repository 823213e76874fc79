"""One request on its way through the door."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tailrace.ports.disk import Buffer

if TYPE_CHECKING:
    from tailrace.broker.node import Node
    from tailrace.doors.kafka.connection import KafkaConnection

Answer = bytes | Sequence[Buffer]


class Written(NamedTuple):
    """A response that its handler has put into bytes itself."""

    body: Buffer


class Call:
    """Who asks, in which version, and a place for the answer.

    `frame` is valid only until the handler returns. A handler that cannot answer at once returns None and calls `reply`
    later, exactly once.
    """

    __slots__ = (
        "abandoned",
        "answer",
        "at",
        "body",
        "client_id",
        "connection",
        "correlation_id",
        "frame",
        "holds",
        "node",
        "version",
    )

    def __init__(
        self,
        node: "Node",
        connection: "KafkaConnection",
        frame: memoryview,
        at: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.node = node
        self.connection = connection
        self.frame = frame
        self.at = at  # where the body begins
        self.version = version
        self.correlation_id = correlation_id
        self.body = b""  # of a request that another broker may have to serve
        self.client_id = client_id
        self.answer: Answer | None = None
        self.holds = False  # the client's later requests wait until this one is let go or answered
        self.abandoned: Callable[[], None] | None = None  # called when the client is gone before its answer

    def reply(self, answer: Answer) -> None:
        """The answer to a call that had to wait; an empty one sends nothing."""
        self.answer = answer
        self.connection.answered()
