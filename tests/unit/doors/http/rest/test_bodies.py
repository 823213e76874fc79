"""JSON bodies: hostile ones are refused by name, and cost no more than their size."""

import json

import pytest

from tailrace.doors.http.rest.bodies import check_depth, read, write, write_value
from tailrace.doors.http.rest.problems import Problem
from tailrace.doors.http.rest.schema import Invalid
from tailrace.model.limits import REST_JSON_MAX_DEPTH, REST_PRODUCE_MAX_BYTES


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "the body is not JSON: it is empty"),
        (b"{", "Expecting property name enclosed in double quotes at line 1, column 2"),
        (b"\xff{}", "the body is not UTF-8: byte 0 is wrong"),
        ("{}".encode("utf-16"), "the body is not UTF-8"),
        (b"NaN", "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1, "a": 2}', "an object has the name 'a' more than once"),
        (b"[" * REST_PRODUCE_MAX_BYTES, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"1" * 10_000, "the body cannot be used"),
        (b"{}{}", "Extra data"),
        (b"{'a': 1}", "Expecting property name"),
    ],
)
def test_what_is_no_json_is_refused(body: bytes, detail: str) -> None:
    with pytest.raises(Problem) as refused:
        read(body)
    assert refused.value.kind.status == 400
    assert detail in refused.value.detail
    assert len(refused.value.detail) < 300


def nested(levels: int) -> object:
    value: object = 1
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return value


def test_values_have_a_depth() -> None:
    check_depth(nested(REST_JSON_MAX_DEPTH), "")
    with pytest.raises(Invalid, match=f"is nested more than {REST_JSON_MAX_DEPTH} levels deep"):
        check_depth(nested(REST_JSON_MAX_DEPTH + 1), "/value")


def test_values_are_written_without_spaces_and_in_utf_8() -> None:
    assert write_value({"cups": 2, "for": "Ännchen"}, "") == '{"cups":2,"for":"Ännchen"}'.encode()
    with pytest.raises(Invalid, match="1e999"):
        write_value([1e999], "/value")


def test_half_a_surrogate_pair_stays_an_escape() -> None:
    body = write({"a": "\ud800", "b": "ä"})
    assert json.loads(body) == {"a": "\ud800", "b": "ä"}
