"""One operation of the REST API as data: what it takes, what it answers, and the function that does it.

From operations are made: the routes of the server (`mounting`), the checks of what clients send, and the OpenAPI
document (`openapi`). So what is documented is what is checked.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal

from tailrace.doors.http.rest.schema import Shape
from tailrace.model.frozen import frozen
from tailrace.model.limits import REST_BODY_MAX_BYTES

if TYPE_CHECKING:
    from tailrace.doors.http.rest.service import Service

JSON: Final = "application/json"
PROBLEM_JSON: Final = "application/problem+json"
BYTES: Final = "application/octet-stream"
PLAIN: Final = "text/plain"
EVENTS: Final = "text/event-stream"


@frozen
class Parameter:
    name: str
    shape: Any  # a `Shape` that can parse text
    help: str
    place: Literal["path", "query", "header"] = "query"
    required: bool = False
    default: Any = None


@frozen
class Body:
    shape: Shape  # of JSON
    help: str = ""
    is_checked: bool = True  # before the handler; else by the handler
    raw: tuple[str, ...] = ()  # content types whose bytes are taken as they are
    example: Any = None
    max_bytes: int = REST_BODY_MAX_BYTES


@frozen
class Answer:
    help: str
    shape: Shape | None = None
    content_type: str = JSON
    example: Any = None


@frozen
class Call:
    """A request, checked."""

    path: Mapping[str, Any]
    query: Mapping[str, Any]
    headers: Mapping[str, Any]  # the declared ones
    body: Any = None  # of JSON, checked; else None
    raw: bytes | None = None  # a body that is taken as it is
    raw_type: str = ""
    principal: str


@frozen
class Reply:
    status: int = 200
    body: Any = None  # written as JSON
    raw: bytes | None = None
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@frozen
class Events:
    """Server-sent events; `farewell` is sent when the server stops."""

    chunks: AsyncIterator[bytes]
    farewell: bytes = b""


Handler = Callable[["Service", Call], Awaitable[Reply | Events]]


@frozen
class Operation:
    id: str
    method: str
    path: str
    tag: str
    help: str
    handler: Handler
    more: str = ""  # what else there is to know
    parameters: Sequence[Parameter] = ()
    body: Body | None = None
    answers: Mapping[int, Answer]
    problems: tuple[str, ...] = ()  # slugs of the kinds that only this one has
