"""Errors as RFC 9457 has them: `application/problem+json` with `type`, `title`, `status` and `detail`.

    {"type": "urn:tailrace:problem:no-such-topic", "title": "There is no such topic", "status": 404,
     "detail": "cannot describe topic orders: UNKNOWN_TOPIC_OR_PARTITION", "code": "UNKNOWN_TOPIC_OR_PARTITION"}

`type` is what programs look at; `code` is Kafka's name of the error, if a broker gave one. `errors` lists what is wrong
with a request, each with its place. What may succeed later, unchanged, is a 503 (429, 409) with `Retry-After`.

Every fault, every error code of Kafka and every error of the client has a kind (`kinds`): faults go through
`wire.faults`, whose `assert_never` makes a fault without a code a type error.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tailrace.client.faults import (
    AssignmentLost,
    Busy,
    ClientError,
    ConnectionLost,
    NoSuchPartition,
    NotAcknowledged,
    OutcomeUnknown,
    Refused,
    SecurityRefused,
    Unavailable,
    Unsupported,
    WrongCluster,
)
from tailrace.client.producer import NotWritten
from tailrace.client.producers import TooManyProducers
from tailrace.client.taking import TooManyTakers
from tailrace.doors.http.rest.kinds import (
    BUSY,
    CONFLICT,
    INVALID,
    LOCK_ENDED,
    NO_TOPIC,
    UNAVAILABLE,
    UNCERTAIN,
    UNSUPPORTED,
    UPSTREAM_LOGIN,
    Kind,
    kind_of_error,
)
from tailrace.doors.http.rest.schema import Invalid
from tailrace.model.faults import Fault
from tailrace.model.limits import FAULT_TEXT_MAX_CHARS
from tailrace.wire.faults import error_of as error_of_fault

URN: Final = "urn:tailrace:problem:"


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(f"{kind.title}: {detail}")
        self.kind = kind
        self.detail = detail if len(detail) <= FAULT_TEXT_MAX_CHARS else detail[:FAULT_TEXT_MAX_CHARS] + "…"
        self.headers = dict(headers or {})
        self.more = more
        if kind.retry_after_s is not None:
            self.headers["retry-after"] = str(kind.retry_after_s)

    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        found = {
            "type": URN + self.kind.slug,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
        }
        return found | {name: one for name, one in self.more.items() if one is not None}


def invalid(errors: Sequence[Invalid]) -> Problem:
    """What is wrong with a request; each place is named."""
    first = errors[0]
    named = [{"where": one.where, "why": one.why} for one in errors]
    return Problem(INVALID, str(first), errors=named)


def problem_of(error: Exception) -> Problem | None:
    """The answer to what went wrong; None: it is a bug."""
    match error:
        case Problem():
            return error
        case Invalid():
            return invalid([error])
        case ClientError():
            return _of_client(error)
        case Fault():
            code = error_of_fault(error)
            return Problem(kind_of_error(code), str(error), code=code.name)
        case _:
            return None


def _of_client(error: ClientError) -> Problem:
    detail = str(error)
    match error:
        case NoSuchPartition():
            return Problem(NO_TOPIC, detail, code=error.error.name)
        case Refused():
            kind = kind_of_error(error.error)
            return Problem(kind, detail, code=error.error.name)
        case NotWritten():
            if error.may_be_written:
                return Problem(UNCERTAIN, detail)
            code = error.error
            return Problem(UNAVAILABLE if code is None else kind_of_error(code), detail, code=code and code.name)
        case NotAcknowledged():
            return Problem(LOCK_ENDED, detail)
        case AssignmentLost():
            return Problem(CONFLICT, detail)
        case Unsupported():
            return Problem(UNSUPPORTED, detail)
        case SecurityRefused() | WrongCluster():
            return Problem(UPSTREAM_LOGIN, detail)
        case OutcomeUnknown():
            return Problem(UNCERTAIN, detail)
        case TooManyProducers() | TooManyTakers() | Busy():
            return Problem(BUSY, detail)
        case ConnectionLost() | Unavailable() | ClientError():
            return Problem(UNAVAILABLE, detail)
