"""One request that the door serves.

`Call` is what the handler of a decoded request needs: the services, the caller, the version, and the client's state
between requests. A forwarded request has a `Client` too, but no connection. `WireCall` is a request on a connection:
its bytes, and its answer.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from tailrace.broker.services import Caller, Services
from tailrace.broker.services.time_slices import TimeSlice
from tailrace.ports.disk import Buffer

if TYPE_CHECKING:
    from tailrace.doors.kafka.connection import KafkaConnection
    from tailrace.doors.kafka.door import KafkaDoor

Answer = bytes | Sequence[Buffer]


class Written(NamedTuple):
    """A response that its handler has encoded itself."""

    body: Buffer


class Client(Protocol):
    """The client that sent a request, as far as handlers need it."""

    @property
    def door(self) -> "KafkaDoor": ...

    @property
    def time_slice(self) -> TimeSlice: ...

    @property
    def connection_number(self) -> int:
        """The number of the client's connection; one that was accepted later has a higher number."""


class Call:
    __slots__ = ("caller", "client", "version")

    def __init__(self, client: Client, version: int, caller: Caller) -> None:
        self.client = client
        self.version = version
        self.caller = caller

    @property
    def services(self) -> Services:
        return self.client.door.services


class Deferred(NamedTuple):
    """A handler without a task, for frequent requests that wait for the log: `begin` gets the decoded request and
    calls back with an outcome, at once or later; `response` makes the response of it. An outcome that is an exception
    is an error of our own, and closes the connection."""

    begin: Callable[[Any, Call, Callable[[Any], None]], None]
    response: Callable[[Any, Call, Any], Any]


class WireCall(Call):
    """A request on a connection, and its answer.

    `frame` is valid only until the handler returns. A handler that cannot answer at once returns None, and calls
    `reply` later, exactly once.
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
        self.body = b""  # of a request that may have to be forwarded to the controller
        self.answer: Answer | None = None
        self.holds = False  # later requests on the connection wait until this one is released or answered
        self.abandoned: Callable[[], None] | None = None  # called if the connection is lost before the answer

    @property
    def connection(self) -> "KafkaConnection":
        return cast("KafkaConnection", self.client)

    def reply(self, answer: Answer) -> None:
        """Answer a call that had to wait. An empty answer sends nothing."""
        self.answer = answer
        self.connection.answered()
