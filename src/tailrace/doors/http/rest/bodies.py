"""Bodies of requests as JSON, within bounds: a hostile body gets an error, and costs no more than its size.

`json` refuses deep nesting by an exception and huge integers by another one; both are the client's fault, not ours. NaN
and Infinity are not JSON. A name that an object has twice is refused: parsers differ in which of them counts.
"""

import json
from typing import Any, Final

from tailrace.doors.http.rest.kinds import NOT_JSON
from tailrace.doors.http.rest.problems import Problem
from tailrace.doors.http.rest.schema import Invalid, shown
from tailrace.model.limits import REST_JSON_MAX_DEPTH

WRITER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False)
ASCII_WRITER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"), check_circular=False)


def read(body: bytes) -> Any:
    try:
        return _READER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise Problem(NOT_JSON, f"the body is not UTF-8: byte {error.start} is wrong") from None
    except RecursionError:
        raise Problem(NOT_JSON, "the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        why = "it is empty" if not body.strip() else f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise Problem(NOT_JSON, f"the body is not JSON: {why}") from None
    except ValueError as error:
        raise Problem(NOT_JSON, f"the body cannot be used: {error}") from None


def write(value: object) -> bytes:
    try:
        return WRITER.encode(value).encode()
    except UnicodeEncodeError:
        return ASCII_WRITER.encode(value).encode()  # half of a surrogate pair can stay an escape


def write_value(value: object, where: str) -> bytes:
    """A JSON value of a request as the bytes of a record."""
    try:
        check_depth(value, where)
        return write(value)
    except ValueError:
        raise Invalid(where, "has a number that JSON cannot write, such as 1e999") from None


def check_depth(value: object, where: str) -> None:
    """Refuse a value in which arrays and objects lie more than so many levels deep."""
    level = [value]
    for _ in range(REST_JSON_MAX_DEPTH):
        level = [
            one
            for outer in level
            if isinstance(outer, dict | list)
            for one in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(one, dict | list)
        ]
        if not level:
            return
    raise Invalid(where, f"is nested more than {REST_JSON_MAX_DEPTH} levels deep")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the name {shown(twice)} more than once")
    return found


_READER: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
