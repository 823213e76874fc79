"""One request on its way through the door.

`Call` is all that a handler of a decoded request needs: the services, the caller, the version, and what its client
keeps between requests. A request that another broker has forwarded has such a client too, but no connection. `WireCall`
is a request of a connection: its bytes, and a place for its answer.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from tailrace.broker.services import Caller, Services
from tailrace.broker.services.time_slices import TimeSlice
from tailrace.ports.disk import Buffer

if TYPE_CHECKING:
    from tailrace.doors.kafka.connection import KafkaConnection
    from tailrace.doors.kafka.door import KafkaDoor

Answer = bytes | Sequence[Buffer]


class Written(NamedTuple):
    """A response that its handler has put into bytes itself."""

    body: Buffer


class Client(Protocol):
    """What a handler may use of the client whose request it serves."""

    @property
    def door(self) -> "KafkaDoor": ...

    @property
    def time_slice(self) -> TimeSlice: ...

    @property
    def connection_number(self) -> int:
        """Numbers the client's connection: a later one has a higher number."""


class Call:
    __slots__ = ("caller", "client", "version")

    def __init__(self, client: Client, version: int, caller: Caller) -> None:
        self.client = client
        self.version = version
        self.caller = caller

    @property
    def services(self) -> Services:
        return self.client.door.services


class WireCall(Call):
    """A request of a connection, and a place for its answer.

    `frame` is valid only until the handler returns. A handler that cannot answer at once returns None and calls `reply`
    later, exactly once.
    """

    __slots__ = ("abandoned", "answer", "at", "body", "correlation_id", "frame", "holds")

    def __init__(
        self,
        connection: "KafkaConnection",
        frame: memoryview,
        at: int,
        version: int,
        correlation_id: int,
        caller: Caller,
    ) -> None:
        self.client = connection
        self.version = version
        self.caller = caller
        self.frame = frame
        self.at = at  # where the body begins
        self.correlation_id = correlation_id
        self.body = b""  # of a request that another broker may have to serve
        self.answer: Answer | None = None
        self.holds = False  # the client's later requests wait until this one is let go or answered
        self.abandoned: Callable[[], None] | None = None  # called when the client is gone before its answer

    @property
    def connection(self) -> "KafkaConnection":
        return cast("KafkaConnection", self.client)

    def reply(self, answer: Answer) -> None:
        """The answer to a call that had to wait; an empty one sends nothing."""
        self.answer = answer
        self.connection.answered()
