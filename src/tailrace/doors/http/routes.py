"""The route table: which methods and paths are served, as data. The OpenAPI document is made from it.

A path pattern is fixed segments and names in braces: `/v1/topics/{topic}/messages`. Segments are compared undecoded, so
that an encoded slash is never a separator. Fixed segments win over names. A path that is there with other methods is
405, and any other 404. `HEAD` is served by the route of `GET`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal
from urllib.parse import unquote_to_bytes

from tailrace.doors.http.errors import HttpError, Problem
from tailrace.doors.http.messages import Request, Response, Stream
from tailrace.model.frozen import frozen
from tailrace.model.limits import HTTP_BODY_MAX_BYTES

Handler = Callable[[Request], Awaitable[Response | Stream]]
RenderProblem = Callable[[Problem], Response]
Schema = Mapping[str, Any]  # JSON Schema

NAME_MARK: Final = "{"


@frozen
class Parameter:
    name: str
    help: str
    schema: Schema  # such as {"type": "integer", "minimum": 0}
    where: Literal["path", "query", "header"] = "query"
    required: bool = False


@frozen
class Answer:
    """What a route answers with one status, for the documentation."""

    help: str
    schema: Schema = field(default_factory=dict)
    content_type: str = "application/json"


@frozen
class Route:
    method: str
    path: str
    handler: Handler
    name: str  # the operation's name in the OpenAPI document
    help: str
    parameters: Sequence[Parameter] = ()
    body: Schema = field(default_factory=dict)  # of a JSON body; none: the body is ignored
    body_types: Sequence[str] = ("application/json",)
    body_max_bytes: int = HTTP_BODY_MAX_BYTES
    answers: Mapping[int, Answer] = field(default_factory=dict)
    tag: str = ""


@frozen
class Api:
    """Routes that share a form of errors."""

    prefix: str  # of all paths; "" is the one that paths without a route belong to
    routes: Sequence[Route]
    render: RenderProblem


@frozen
class Match:
    route: Route
    parameters: Mapping[str, str]


class Router:
    def __init__(self, apis: Sequence[Api]) -> None:
        self.apis = sorted(apis, key=lambda one: -len(one.prefix))
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: dict[int, list[tuple[list[str], dict[str, Route]]]] = {}  # by the number of segments
        for api in apis:
            for route in api.routes:
                assert route.path.startswith(api.prefix)
                self._add(route)

    def _add(self, route: Route) -> None:
        if NAME_MARK not in route.path:
            methods = self._fixed.setdefault(route.path, {})
        else:
            segments = route.path.split("/")
            same = self._patterns.setdefault(len(segments), [])
            methods = next((found for other, found in same if _shape(other) == _shape(segments)), {})
            if not methods:
                same.append((segments, methods))
                same.sort(key=lambda one: [segment.startswith(NAME_MARK) for segment in one[0]])
        assert route.method not in methods, f"two routes for {route.method} {route.path}"
        methods[route.method] = route

    def api_of(self, path: str) -> Api:
        """The API whose form of errors a path has."""
        return next(one for one in self.apis if path == one.prefix or path.startswith(one.prefix + "/"))

    def find(self, method: str, path: str) -> Match:
        """The route for an undecoded path. HttpError 404 or 405 if there is none."""
        parameters: dict[str, str] = {}
        methods = self._fixed.get(path)
        if methods is None:
            methods, parameters = self._find_pattern(path)
        route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
        if route is None:
            raise MethodNotAllowed(_allowed(methods))
        return Match(route=route, parameters=parameters)

    def _find_pattern(self, path: str) -> tuple[dict[str, Route], dict[str, str]]:
        segments = path.split("/")
        for pattern, methods in self._patterns.get(len(segments), ()):
            named = list(zip(pattern, segments, strict=True))
            if all(wanted == given or (wanted.startswith(NAME_MARK) and given) for wanted, given in named):
                return methods, {wanted[1:-1]: decoded(given) for wanted, given in named if wanted != given}
        raise HttpError(404, "there is nothing at this path", "no_such_path")


class MethodNotAllowed(HttpError):
    def __init__(self, allowed: str) -> None:
        super().__init__(405, f"this path allows {allowed}")
        self.problem = Problem(status=405, detail=str(self), kind="method_not_allowed", allow=allowed)


def _shape(segments: Sequence[str]) -> list[str]:
    return [NAME_MARK if one.startswith(NAME_MARK) else one for one in segments]


def _allowed(methods: Mapping[str, Route]) -> str:
    head = ["HEAD"] if "GET" in methods else []
    return ", ".join([*sorted(methods), *head, "OPTIONS"])


def decoded(text: str) -> str:
    """A percent-encoded part of a path. HttpError if it is not UTF-8."""
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise HttpError(400, "the path has bytes that are not UTF-8") from None
