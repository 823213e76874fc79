"""Shapes: what they take and refuse, where they say that it is, and what their documents are."""

from typing import Any

import pytest

from tailrace.doors.http.rest.schema import (
    Anything,
    Either,
    Flag,
    Invalid,
    Many,
    Mapped,
    Null,
    Object,
    Shape,
    Text,
    Whole,
    named_parts,
)

ORDER = Object(
    name="Order",
    fields={"table": Whole(least=1, most=9), "drinks": Many(of=Text(min_chars=1), most=2), "to_go": Flag()},
    optional=("to_go",),
    defaults={"to_go": False},
)


def why(shape: Shape, value: Any) -> str:
    with pytest.raises(Invalid) as refused:
        shape.check(value, "")
    return str(refused.value)


def test_defaults_are_filled_in() -> None:
    assert ORDER.check({"table": 4, "drinks": ["tea"]}, "") == {"table": 4, "drinks": ["tea"], "to_go": False}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the body: must be an object, not an array"),
        ({"table": 4}, "/drinks: is missing"),
        ({"table": True, "drinks": []}, "/table: must be an integer, not True"),
        ({"table": 4.0, "drinks": []}, "/table: must be an integer, not 4.0"),
        ({"table": "4", "drinks": []}, "/table: must be an integer, not '4'"),
        ({"table": 10, "drinks": []}, "/table: 10 is not between 1 and 9"),
        ({"table": 10**400, "drinks": []}, f"/table: 1{'0' * 79}… is not between 1 and 9"),
        ({"table": 4, "drinks": ["a", ""]}, "/drinks/1: has 0 characters; allowed are 1 to 32767"),
        ({"table": 4, "drinks": ["a", "b", "c"]}, "/drinks: has 3 elements; allowed are 0 to 2"),
        ({"table": 4, "drinks": [], "to_go": 1}, "/to_go: must be true or false, not 1"),
        ({"table": 4, "drinks": [], "to-go": True}, "/to-go: unknown field; known are table, drinks, to_go"),
        ({"table": 4, "drinks": [], "a/b~c": 1}, "/a~1b~0c: unknown field; known are table, drinks, to_go"),
        ({"table": 4, "drinks": ["\ud800"]}, "/drinks/0: is not Unicode text: it has half of a surrogate pair"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(value: Any, message: str) -> None:
    assert why(ORDER, value) == message


def test_long_and_odd_names_are_cut_and_escaped() -> None:
    assert len(why(ORDER, {"x" * 100_000: 1})) < 300
    why(ORDER, {"\ud800": 1}).encode()


def test_text_has_a_pattern_or_choices() -> None:
    assert "is not a name" in why(Text(pattern="[a-z]+", wants="a name"), "A")
    assert why(Text(pattern="[a-z]+", wants="a name"), "a\n") == "the body: 'a\\n' is not a name"
    assert why(Text(choices=("a", "b")), "c") == "the body: 'c' is not one of a, b"
    assert Text(nullable=True).check(None, "") is None


def test_either_takes_the_first_that_fits() -> None:
    place = Either(of=(Text(choices=("end",)), Whole()), wants="end or an offset")
    assert place.check("end", "") == "end"
    assert place.parse("17", "") == 17
    assert why(place, -1) == "the body: -1 is not end or an offset"
    assert why(Either(of=(Null(),), wants="null"), 0) == "the body: 0 is not null"


def test_mapped_checks_its_values() -> None:
    assert Mapped(of=Whole()).check({"a": 1}, "") == {"a": 1}
    assert why(Mapped(of=Whole(), most=1), {"a": 1, "b": 2}) == "the body: has 2 fields; allowed are 1"
    assert why(Mapped(of=Whole()), {"a": "x"}) == "/a: must be an integer, not 'x'"


@pytest.mark.parametrize("text", ["", "1.0", "+1", "0x1", "१", "1e3", " 1", "9" * 30, "99999999999999999999", "-1"])
def test_parameters_that_are_no_integers(text: str) -> None:
    with pytest.raises(Invalid):
        Whole().parse(text, "offset")


def test_parameters_are_parsed() -> None:
    assert Whole().parse("9223372036854775807", "offset") == 2**63 - 1
    assert Flag().parse("true", "internal") is True
    with pytest.raises(Invalid, match="internal: must be true or false, not 'yes'"):
        Flag().parse("yes", "internal")


def test_documents_are_json_schema() -> None:
    assert ORDER.document() == {"$ref": "#/components/schemas/Order"}
    assert named_parts([Many(of=ORDER)]) == {
        "Order": {
            "type": "object",
            "properties": {
                "table": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9},
                "drinks": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 2},
                "to_go": {"type": "boolean", "default": False},
            },
            "additionalProperties": False,
            "required": ["table", "drinks"],
        }
    }
    assert Anything().document() == {}
