"""The OpenAPI 3.1 document of the REST API, made from its operations."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import tailrace
from tailrace.doors.http.rest.kinds import UNAVAILABLE, Kind, all_kinds
from tailrace.doors.http.rest.operation import JSON, PROBLEM_JSON, Answer, Body, Operation
from tailrace.doors.http.rest.problems import URN
from tailrace.doors.http.rest.schema import INT32_MAX, Many, Object, Shape, Text, Whole, named_parts

TAGS: Final = {
    "topics": "Topics, their settings and offsets.",
    "records": "Producing and consuming.",
    "groups": "Consumer groups: offsets, lag, consuming by group.",
    "queues": "Queues: messages that are taken, and settled one by one.",
    "cluster": "Brokers, their doors, health.",
}
PROBLEM: Final = Object(
    name="Problem",
    help="An error as RFC 9457 has them.",
    fields={
        "type": Text(help=f"What happened, for programs: {URN} and a word such as no-such-topic."),
        "title": Text(help="The same in words."),
        "status": Whole(most=599),
        "detail": Text(help="What happened, which value was wrong, what to do."),
        "code": Text(help="Kafka's name of the error, if a broker gave one."),
        "errors": Many(
            help="What is wrong with the request.",
            of=Object(fields={"where": Text(help="A JSON Pointer, or a parameter."), "why": Text()}),
        ),
        "written": Many(
            help="With a request of several records: where each of them is; null: not written, or not known to be.",
            of=Object(
                fields={"partition": Whole(most=INT32_MAX), "offset": Whole(nullable=True)},
            ),
        ),
        "earliest": Whole(help="With offset-out-of-range: the first offset of the partition."),
        "latest": Whole(help="With offset-out-of-range: the offset of the next record."),
    },
    optional=("code", "errors", "written", "earliest", "latest"),
)
GENERAL: Final = ("invalid-request", "too-large", "unavailable", "unexpected-error")  # what any operation may answer


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tailrace REST API",
            "version": tailrace.__version__,
            "description": "Produce and consume over HTTP. Errors are `application/problem+json` (RFC 9457).",
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {"schemas": named_parts([PROBLEM, *_shapes(operations)])},
    }


def _shapes(operations: Sequence[Operation]) -> Iterator[Shape]:
    for one in operations:
        if one.body is not None:
            yield one.body.shape
        for parameter in one.parameters:
            yield parameter.shape
        for answer in one.answers.values():
            if answer.shape is not None:
                yield answer.shape


def _operation(one: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": one.id, "tags": [one.tag], "summary": one.help}
    if one.more:
        found["description"] = one.more
    if one.parameters:
        found["parameters"] = [_parameter(parameter) for parameter in one.parameters]
    if one.body is not None:
        found["requestBody"] = _body(one.body)
    found["responses"] = {str(status): _answer(answer) for status, answer in one.answers.items()}
    found["responses"] |= _problems(one)
    return found


def _parameter(one: Any) -> dict[str, Any]:
    shape = one.shape.document()
    if one.default not in (None, ""):
        shape = shape | {"default": one.default}
    found = {"name": one.name, "in": one.place, "description": one.help, "schema": shape}
    return found | ({"required": True} if one.required else {})


def _body(one: Body) -> dict[str, Any]:
    content: dict[str, Any] = {JSON: {"schema": one.shape.document()}}
    if one.example is not None:
        content[JSON]["example"] = one.example
    for raw in one.raw:
        content[raw] = {"schema": {"type": "string"}} if raw.startswith("text/") else {}
    found: dict[str, Any] = {"required": True, "content": content}
    return found | ({"description": one.help} if one.help else {})


def _answer(one: Answer) -> dict[str, Any]:
    found: dict[str, Any] = {"description": one.help}
    if one.shape is not None:
        found["content"] = {one.content_type: {"schema": one.shape.document()}}
    elif one.content_type != JSON:
        found["content"] = {one.content_type: {}}
    return found


def _problems(one: Operation) -> dict[str, Any]:
    by_status: dict[int, list[Kind]] = {}
    kinds = {kind.slug: kind for kind in all_kinds()}
    for slug in dict.fromkeys((*one.problems, *GENERAL)):
        by_status.setdefault(kinds[slug].status, []).append(kinds[slug])
    content = {PROBLEM_JSON: {"schema": PROBLEM.document()}}
    found = {}
    for status in sorted(by_status):
        names = "; ".join(f"{kind.slug}: {kind.title}" for kind in by_status[status])
        found[str(status)] = {"description": names, "content": content}
        if status == UNAVAILABLE.status:
            found[str(status)]["headers"] = {
                "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
            }
    return found


def written(operations: Sequence[Operation]) -> str:
    return json.dumps(document(operations), indent=1, ensure_ascii=False) + "\n"
