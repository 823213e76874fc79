"""Requests as handlers see them, and the responses that they give: plain values, without sockets.

Nothing of a request ever gets into a header of a response: header values are those of our code, and are checked for
line ends all the same (a line end in one would let a client write headers of its own).
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from typing import Any, Final
from urllib.parse import parse_qsl

from tailrace.doors.http.errors import REASONS, HttpError
from tailrace.model.caller import Caller
from tailrace.model.frozen import frozen
from tailrace.model.limits import HTTP_PARAMETERS_MAX

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
PROBLEM_JSON: Final = "application/problem+json"
EVENTS: Final = "text/event-stream"
TEXT: Final = "text/plain; charset=utf-8"


@frozen
class Request:
    method: str
    path: str  # decoded, for log lines and messages only: routes are matched on the undecoded segments
    parameters: Mapping[str, str]  # those of the route's path, decoded
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    caller: Caller
    client_is_gone: Callable[[], bool]  # a handler that waits for long may ask

    @property
    def content_type(self) -> str:
        """The media type of the body, without its parameters; "" if the client names none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def json(self) -> Any:
        """The body as JSON, whatever type the client says that it has. HttpError if it is none."""
        return read_json(self.body)

    def form(self) -> dict[str, str]:
        return read_pairs(self.body, "the form")


@frozen
class Response:
    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@frozen
class Stream:
    """A response whose body comes piece by piece, each sent when the client has read most of those before.

    When the server stops, `farewell` is sent instead of what would follow. The iterator is closed in any case.
    """

    chunks: AsyncIterator[bytes]
    content_type: str = EVENTS
    headers: Mapping[str, str] = field(default_factory=dict)
    farewell: bytes = b""
    status: int = 200


def json_response(value: object, status: int = 200, content_type: str = JSON) -> Response:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return Response(status=status, body=body, content_type=content_type)


def read_json(body: bytes) -> Any:
    """JSON in UTF-8. Refused: other encodings, NaN and Infinity, nesting that is too deep, numbers without end."""
    try:
        return DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise HttpError(400, f"the body is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from None
    except RecursionError:
        raise HttpError(400, "the body is JSON that is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise HttpError(400, f"the body is not JSON: {error.msg} at {where}") from None
    except ValueError as error:
        raise HttpError(400, f"the body has a number that cannot be used: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def read_pairs(text: bytes, what: str) -> dict[str, str]:
    """Names and values of a form or a query. A name that is given twice is refused: it is unclear which one counts."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=HTTP_PARAMETERS_MAX,
        )
    except UnicodeDecodeError:
        raise HttpError(400, f"{what} has bytes that are neither ASCII nor percent-encoded UTF-8") from None
    except ValueError:
        raise HttpError(
            400, f"{what} is not of the form name=value&…, of at most {HTTP_PARAMETERS_MAX} names"
        ) from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise HttpError(400, f"{what} has a name more than once")
    return found


LINE_END: Final = re.compile(r"[\r\n]")


def head_of(status: int, headers: Mapping[str, str], fixed: str) -> bytes:
    """The head of a response, without the empty line; `fixed` is lines that the connection adds."""
    lines = [f"HTTP/1.1 {status} {REASONS[status]}\r\n", fixed]
    for name, value in headers.items():
        assert not LINE_END.search(value), f"header {name} would break the response"
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("latin-1")
