"""The JSON form of records: what is read can be written again, byte for byte."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.client.consumer import Received
from tailrace.doors.http.rest import bodies
from tailrace.doors.http.rest.records import (
    DATUM,
    NEW_RECORDS,
    RECORD,
    NewRecord,
    datum,
    datum_bytes,
    new_records,
    record,
)
from tailrace.doors.http.rest.schema import Invalid
from tailrace.model.ids import PartitionName
from tailrace.model.limits import REST_HEADERS_MAX, REST_RECORDS_MAX

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def received(value: bytes | None, headers: tuple[tuple[str, bytes | None], ...] = ()) -> Received:
    return Received(PartitionName("orders", 1), 7, 1000, b"key", value, headers)


@given(st.none() | st.binary() | st.text().map(str.encode), st.sampled_from(["auto", "base64"]))
def test_any_bytes_come_back(data: bytes | None, form: str) -> None:
    through_json = json.loads(bodies.write(datum(data, form)))
    assert datum_bytes(through_json, "") == data
    DATUM.check(through_json, "")


@given(st.binary() | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_json_comes_back_as_the_same_value(data: bytes) -> None:
    shown = json.loads(bodies.write(datum(data, "json")))
    back = datum_bytes(shown, "")
    assert back is not None
    assert back == data or json.loads(back) == json.loads(data)


def test_the_forms() -> None:
    assert datum(None, "auto") is None
    assert datum(b"", "auto") == ""
    assert datum(b"caf\xc3\xa9", "auto") == "café"
    assert datum(b"\xff\x00", "auto") == {"base64": "/wA="}
    assert datum(b"abc", "base64") == {"base64": "YWJj"}
    assert datum(b'{"cups": 2}', "json") == {"json": {"cups": 2}}
    assert datum(b"null", "json") == {"json": None}
    assert datum(b"two", "json") == "two"
    assert datum(b"\xff", "json") == {"base64": "/w=="}
    assert datum(b"NaN", "json") == "NaN"
    assert datum(b"1e999", "json") == "1e999"
    assert datum(b"[" * 100_000, "json") == "[" * 100_000


def test_a_record_is_shown_as_it_is_declared() -> None:
    shown = record(received(b"two", (("trace", b"7f"), ("trace", None), ("raw", b"\xff"))), "auto")
    assert shown == {
        "partition": 1,
        "offset": 7,
        "timestamp": 1000,
        "key": "key",
        "value": "two",
        "headers": [
            {"name": "trace", "value": "7f"},
            {"name": "trace", "value": None},
            {"name": "raw", "value": {"base64": "/w=="}},
        ],
    }
    RECORD.check(shown, "")


def test_a_header_name_that_is_no_utf_8_is_replaced() -> None:
    name = b"\xff\xc3\xa4".decode("utf-8", "surrogateescape")
    shown = record(received(b"two", ((name, None),)), "auto")
    assert shown["headers"][0]["name"] == "\N{REPLACEMENT CHARACTER}ä"
    bodies.write(shown)


def test_new_records() -> None:
    body = {
        "records": [
            {"value": "two coffees", "key": "table 4"},
            {"value": {"json": {"cups": 2}}, "partition": 3, "timestamp": 5},
            {"value": {"base64": "AP8="}, "headers": [{"name": "a", "value": {"json": None}}, {"name": "b"}]},
            {},
            {"value": None, "key": None, "partition": None, "timestamp": None},
        ]
    }
    nothing = NewRecord(None, None, (), None, None)
    assert new_records(body) == [
        NewRecord(b"two coffees", b"table 4", (), None, None),
        NewRecord(b'{"cups":2}', None, (), 3, 5),
        NewRecord(b"\x00\xff", None, (("a", b"null"), ("b", None)), None, None),
        nothing,
        nothing,
    ]


WRONG = [
    ([], "the body: must be an object"),
    ({}, "/records: is missing"),
    ({"records": {}}, "/records: must be an array, not an object"),
    ({"records": []}, "/records: has 0 elements; allowed are 1 to 1000"),
    ({"records": [{}], "acks": 1}, "/acks: unknown field; known is records"),
    ({"records": [1]}, "/records/0: must be an object, not a number"),
    ({"records": [{}, {"Value": 1}]}, "/records/1/Value: unknown field; known are key, value"),
    ({"records": [{"value": 1}]}, "/records/0/value: must be null, a string"),
    ({"records": [{"value": ["a"]}]}, "/records/0/value: must be null, a string"),
    ({"records": [{"value": {"json": 1, "base64": ""}}]}, "/records/0/value: must be null, a string"),
    ({"records": [{"value": {"base64": "AP8"}}]}, "/records/0/value/base64: is not base64"),
    ({"records": [{"value": {"base64": "A P8="}}]}, "/records/0/value/base64: is not base64"),
    ({"records": [{"value": {"base64": 1}}]}, "/records/0/value/base64: must be a string, not a number"),
    ({"records": [{"value": "\ud800"}]}, "/records/0/value: is not Unicode text"),
    ({"records": [{"partition": -1}]}, "/records/0/partition: -1 is not between 0 and 2147483647"),
    ({"records": [{"partition": "1"}]}, "/records/0/partition: must be an integer, not '1'"),
    ({"records": [{"timestamp": True}]}, "/records/0/timestamp: must be an integer, not True"),
    ({"records": [{"headers": None}]}, "/records/0/headers: must be an array, not null"),
    ({"records": [{"headers": {"a": "b"}}]}, "/records/0/headers: must be an array, not an object"),
    ({"records": [{"headers": [{"value": "b"}]}]}, "/records/0/headers/0/name: is missing"),
    ({"records": [{"headers": [{"name": "a", "x": 1}]}]}, "/records/0/headers/0/x: unknown field"),
    ({"records": [{"headers": [{"name": "a"}] * (REST_HEADERS_MAX + 1)}]}, "/records/0/headers: has 1001 elements"),
    ({"records": [{}] * (REST_RECORDS_MAX + 1)}, "/records: has 1001 elements; allowed are 1 to 1000"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_wrong_records_are_refused_with_their_place(body: Any, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        new_records(body)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_the_documented_shape_refuses_them_too(body: Any, message: str) -> None:
    """The reader of the hot path is written by hand; the shapes are what the document says. Base64 is not checked by
    them, as JSON Schema cannot."""
    if "is not base64" in message:
        return
    with pytest.raises(Invalid):
        NEW_RECORDS.check(body, "")


def test_the_documented_shape_takes_what_is_read() -> None:
    body = {"records": [{"value": {"base64": base64.b64encode(b"a").decode()}, "headers": [{"name": "a"}]}, {}]}
    NEW_RECORDS.check(body, "")
    new_records(body)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    value: Any = 1
    for _ in range(500):
        value = [value]
    with pytest.raises(Invalid, match="/records/0/value: is nested more than"):
        new_records({"records": [{"value": {"json": value}}]})
