"""What can go wrong for a client: a broker refuses a request, with Kafka's error code, or cannot be reached.

Every message says what was attempted, and of which broker.
"""

from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error


class ClientError(Exception):
    """The base of all errors of the client."""


class ConnectionLost(ClientError, ConnectionError):
    """The connection closed, or a response could not be read: requests without a response may have been executed."""


class Unsupported(ClientError):
    """The broker and this client have no version of an API in common."""


class SecurityRefused(ClientError):
    """TLS or the login failed: trying again would not help."""


class WrongCluster(ClientError):
    """A broker of another cluster answers at an address of this one."""


class Refused(ClientError):
    """The broker answers with an error code."""

    def __init__(self, code: int, what: str, message: str | None = None) -> None:
        self.error = error_of(code)
        self.what = what
        self.message = message  # of the broker
        super().__init__(f"cannot {what}: {message or self.error.name}")

    @property
    def retriable(self) -> bool:
        return self.error.retriable


class NoSuchPartition(Refused):
    """The topic has no partition of this number. Retriable, as the partition may just have been added."""

    def __init__(self, partition: PartitionName, count: int) -> None:
        what = f"find partition {partition.partition} of topic {partition.topic}"
        found = f"it has {count} partition{'' if count == 1 else 's'}"
        super().__init__(Error.UNKNOWN_TOPIC_OR_PARTITION, what, found)


class AssignmentLost(ClientError):
    """A member of a group cannot commit: others own its partitions by now, and process again what was not committed."""


class NotAcknowledged(ClientError):
    """A message of a share group was not acknowledged, or perhaps not: it may be delivered again, to any member."""


class OutcomeUnknown(ClientError):
    """A request may have been executed, or not: its answer was lost, or the broker itself does not know."""


class Busy(ClientError):
    """There are messages, but another taker has locked the next ones. It may be tried again at once."""


class Unavailable(ClientError):
    """No broker could serve a request within its deadline; the message has the last reason."""


def error_of(code: int) -> Error:
    """The error of a code; a code that Kafka 4.3 does not have is an unknown server error."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise `Refused` unless the code is NONE; `what` says what was attempted."""
    if code != Error.NONE:
        raise Refused(code, what, message)
