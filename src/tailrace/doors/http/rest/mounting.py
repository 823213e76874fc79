"""The operations of the REST API as routes of the HTTP server: requests are checked, answers and errors written.

Everything that a client can get wrong is found here, before a handler runs: parameters that are unknown, missing or of
a wrong type, content types, bodies. All wrong parameters are named at once, and the first thing that is wrong with a
body.
"""

from collections.abc import Mapping
from typing import Any, Final

from tailrace.doors.http.errors import Problem as ServerProblem
from tailrace.doors.http.messages import Request, Response, Stream
from tailrace.doors.http.rest import bodies
from tailrace.doors.http.rest.kinds import WRONG_TYPE, kind_of_status
from tailrace.doors.http.rest.operation import (
    EVENTS,
    JSON,
    PROBLEM_JSON,
    Call,
    Events,
    Operation,
    Parameter,
    Reply,
)
from tailrace.doors.http.rest.operations import OPERATIONS
from tailrace.doors.http.rest.problems import Problem, invalid, problem_of
from tailrace.doors.http.rest.schema import Invalid, shown
from tailrace.doors.http.rest.service import Service
from tailrace.doors.http.routes import Api, Handler, Route
from tailrace.doors.upstream import Upstream
from tailrace.model.limits import REST_BODY_MAX_BYTES
from tailrace.ports import Ports

PREFIX: Final = "/v1"
DEFAULT_TYPE: Final = JSON  # of a body whose type the client does not name


def rest_api(upstream: Upstream, ports: Ports) -> Api:
    """The REST API of a door."""
    service = Service(upstream, ports)
    return Api(prefix=PREFIX, routes=[_route(service, one) for one in OPERATIONS], render=render)


def _route(service: Service, operation: Operation) -> Route:
    return Route(
        method=operation.method,
        path=operation.path,
        handler=_handler(service, operation),
        name=operation.id,
        help=operation.help,
        tag=operation.tag,
        body_max_bytes=REST_BODY_MAX_BYTES if operation.body is None else operation.body.max_bytes,
    )


def _handler(service: Service, operation: Operation) -> Handler:
    async def handle(request: Request) -> Response | Stream:
        try:
            done = await operation.handler(service, checked(operation, request))
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            return response_of(problem)
        if isinstance(done, Events):
            return Stream(chunks=done.chunks, content_type=EVENTS, farewell=done.farewell)
        return _response(done)

    return handle


def _response(done: Reply) -> Response:
    body = done.raw if done.raw is not None else b"" if done.body is None else bodies.write(done.body)
    return Response(status=done.status, body=body, content_type=done.content_type, headers=done.headers)


def response_of(problem: Problem) -> Response:
    return Response(
        status=problem.kind.status,
        body=bodies.write(problem.document()),
        content_type=PROBLEM_JSON,
        headers=problem.headers,
    )


def render(problem: ServerProblem) -> Response:
    """An error that the server found before any operation, in the form of this API."""
    found = Problem(kind_of_status(problem.status), problem.detail)
    body = bodies.write(found.document() | {"status": problem.status})
    return Response(status=problem.status, body=body, content_type=PROBLEM_JSON)


# Checking requests


def checked(operation: Operation, request: Request) -> Call:
    given: dict[str, Mapping[str, str]] = {
        "path": request.parameters,
        "query": request.query,
        "header": request.headers,
    }
    errors: list[Invalid] = []
    found: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
    known: dict[str, None] = {}
    for one in operation.parameters:
        if one.place == "query":
            known[one.name] = None
        try:
            found[one.place][one.name] = _parsed(one, given[one.place].get(one.name))
        except Invalid as error:
            errors.append(error)
    why = f"unknown parameter; known are {', '.join(known) or 'none'}"
    errors += [Invalid(shown(name)[1:-1], why) for name in request.query if name not in known]
    if errors:
        raise invalid(errors)
    body, raw = _body(operation, request)
    return Call(
        path=found["path"],
        query=found["query"],
        headers=found["header"],
        body=body,
        raw=raw,
        principal=request.caller.principal,
    )


def _parsed(one: Parameter, text: str | None) -> Any:
    if text is not None:
        return one.shape.parse(text, one.name)
    if one.required:
        raise Invalid(one.name, "is missing")
    return one.default


def _body(operation: Operation, request: Request) -> tuple[Any, bytes | None]:
    """The body as JSON, or as it is."""
    wanted = operation.body
    if wanted is None:
        if request.body:
            raise Invalid("", f"{operation.method} {operation.path} takes no body")
        return None, None
    content_type = request.content_type or DEFAULT_TYPE
    if content_type in wanted.raw:
        return None, request.body
    if content_type != JSON and not content_type.endswith("+json"):
        known = ", ".join((JSON, *wanted.raw))
        raise Problem(WRONG_TYPE, f"{shown(content_type)} is not one of {known}", {"accept": known})
    value = bodies.read(request.body)
    return (wanted.shape.check(value, "") if wanted.is_checked else value), None
