"""The shapes of requests and answers as data: what checks them is also what the OpenAPI document is made from.

`check` takes a value that `json` has parsed, and raises `Invalid` with the place (a JSON Pointer, RFC 6901) and the
reason. Unknown fields are refused: a misspelt option that is silently ignored is worse than an error. Integers are
integers, not `true` and not `1.0`. Text must be encodable as UTF-8: JSON can smuggle in half a surrogate pair, which no
record can carry.

`parse` takes the text of a parameter. `document` is the JSON Schema (draft 2020-12) of the shape.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Protocol

from tailrace.model.frozen import frozen

SHOWN_MAX_CHARS: Final = 80  # of a value in a message: it may be huge
TEXT_MAX_CHARS: Final = 32_767
INT64_MAX: Final = 2**63 - 1
INT32_MAX: Final = 2**31 - 1
DIGITS: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)
BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}


class Invalid(Exception):
    """A value does not have its shape. `where` is a JSON Pointer into the body, or the name of a parameter."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where or 'the body'}: {why}")
        self.where = where
        self.why = why


class Shape(Protocol):
    def check(self, value: Any, where: str) -> Any:
        """The value, with defaults filled in; raises `Invalid`."""

    def document(self) -> dict[str, Any]: ...


def shown(value: object) -> str:
    """A value as an error message repeats it."""
    text = value if isinstance(value, str) else repr(value) if isinstance(value, int | float | bool) else kind(value)
    if isinstance(value, str):
        text = ascii(text[: SHOWN_MAX_CHARS + 1])
    return text if len(text) <= SHOWN_MAX_CHARS else text[:SHOWN_MAX_CHARS] + "…"


def kind(value: object) -> str:
    """What JSON calls the type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


@frozen
class Text:
    """A string."""

    help: str = ""
    min_chars: int = 0
    max_chars: int = TEXT_MAX_CHARS
    pattern: str = ""  # the whole text must match
    wants: str = ""  # the pattern in words
    choices: tuple[str, ...] = ()
    nullable: bool = False
    example: str | None = None

    def check(self, value: Any, where: str) -> str | None:
        if value is None and self.nullable:
            return None
        if not isinstance(value, str):
            raise Invalid(where, f"must be a string, not {kind(value)}")
        if self.choices and value not in self.choices:
            raise Invalid(where, f"{shown(value)} is not one of {', '.join(self.choices)}")
        if not self.min_chars <= len(value) <= self.max_chars:
            raise Invalid(where, f"has {len(value)} characters; allowed are {self.min_chars} to {self.max_chars}")
        if self.pattern and re.fullmatch(self.pattern, value, re.ASCII) is None:
            raise Invalid(where, f"{shown(value)} is not {self.wants or 'allowed'}")
        return encodable(value, where)

    def parse(self, text: str, where: str) -> str | None:
        return self.check(text, where)

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": ["string", "null"] if self.nullable else "string"}
        if self.choices:
            found["enum"] = list(self.choices)
        if self.min_chars:
            found["minLength"] = self.min_chars
        if not self.choices and self.max_chars != TEXT_MAX_CHARS:
            found["maxLength"] = self.max_chars
        if self.pattern:
            found["pattern"] = f"^{self.pattern}$"
        return _described(found, self.help, self.example)


def encodable(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Invalid(where, "is not Unicode text: it has half of a surrogate pair") from None
    return value


@frozen
class Whole:
    """An integer."""

    help: str = ""
    least: int = 0
    most: int = INT64_MAX
    nullable: bool = False
    example: int | None = None

    def check(self, value: Any, where: str) -> int | None:
        if value is None and self.nullable:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise Invalid(where, f"must be an integer, not {shown(value)}")
        if not self.least <= value <= self.most:
            raise Invalid(where, f"{shown(value)} is not between {self.least} and {self.most}")
        return value

    def parse(self, text: str, where: str) -> int | None:
        if DIGITS.fullmatch(text) is None:
            raise Invalid(where, f"{shown(text)} is not an integer between {self.least} and {self.most}")
        return self.check(int(text), where)

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": ["integer", "null"] if self.nullable else "integer"}
        found |= {"format": "int32" if self.most <= INT32_MAX else "int64", "minimum": self.least, "maximum": self.most}
        return _described(found, self.help, self.example)


@frozen
class Flag:
    """A boolean."""

    help: str = ""

    def check(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise Invalid(where, f"must be true or false, not {shown(value)}")
        return value

    def parse(self, text: str, where: str) -> bool:
        if text not in BOOLEANS:
            raise Invalid(where, f"must be true or false, not {shown(text)}")
        return BOOLEANS[text]

    def document(self) -> dict[str, Any]:
        return _described({"type": "boolean"}, self.help)


@frozen
class Many:
    """An array."""

    of: Shape
    help: str = ""
    least: int = 0
    most: int = 10_000

    def check(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise Invalid(where, f"must be an array, not {kind(value)}")
        if not self.least <= len(value) <= self.most:
            raise Invalid(where, f"has {len(value)} elements; allowed are {self.least} to {self.most}")
        return [self.of.check(one, f"{where}/{number}") for number, one in enumerate(value)]

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "array", "items": self.of.document(), "maxItems": self.most}
        if self.least:
            found["minItems"] = self.least
        return _described(found, self.help)


@frozen
class Mapped:
    """An object with any names, whose values have one shape."""

    of: Shape
    help: str = ""
    most: int = 1_000

    def check(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Invalid(where, f"must be an object, not {kind(value)}")
        if len(value) > self.most:
            raise Invalid(where, f"has {len(value)} fields; allowed are {self.most}")
        return {encodable(name, where): self.of.check(one, f"{where}/{pointer(name)}") for name, one in value.items()}

    def document(self) -> dict[str, Any]:
        found = {"type": "object", "additionalProperties": self.of.document(), "maxProperties": self.most}
        return _described(found, self.help)


@frozen
class Object:
    """An object with these fields and no others. `Object.optional` names those that may be left out."""

    fields: Mapping[str, Shape]
    optional: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of optional fields; one without a default stays away
    help: str = ""
    name: str = ""  # in the components of the document; "": it stands where it is used

    def check(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Invalid(where, f"must be an object, not {kind(value)}")
        for name in value:
            if name not in self.fields:
                known = ", ".join(self.fields) or "none"
                raise Invalid(f"{where}/{pointer(name)}", f"unknown field; known are {known}")
        found = dict(self.defaults)
        for name, shape in self.fields.items():
            if name in value:
                found[name] = shape.check(value[name], f"{where}/{name}")
            elif name not in self.optional:
                raise Invalid(f"{where}/{name}", "is missing")
        return found

    def document(self) -> dict[str, Any]:
        return {"$ref": f"#/components/schemas/{self.name}"} if self.name else self.spelt_out()

    def spelt_out(self) -> dict[str, Any]:
        properties = {}
        for name, shape in self.fields.items():
            properties[name] = shape.document()
            if name in self.defaults:
                properties[name] = properties[name] | {"default": self.defaults[name]}
        found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [name for name in self.fields if name not in self.optional]
        if required:
            found["required"] = required
        return _described(found, self.help)


@frozen
class Either:
    """One of several shapes; the first that fits is taken."""

    of: tuple[Shape, ...]
    help: str = ""
    wants: str = ""
    name: str = ""

    def check(self, value: Any, where: str) -> Any:
        for shape in self.of:
            try:
                return shape.check(value, where)
            except Invalid:
                continue
        raise Invalid(where, f"{shown(value)} is not {self.wants}")

    def parse(self, text: str, where: str) -> Any:
        for shape in self.of:
            try:
                return shape.parse(text, where)  # type: ignore[attr-defined]
            except Invalid:
                continue
        raise Invalid(where, f"{shown(text)} is not {self.wants}")

    def document(self) -> dict[str, Any]:
        return {"$ref": f"#/components/schemas/{self.name}"} if self.name else self.spelt_out()

    def spelt_out(self) -> dict[str, Any]:
        return _described({"anyOf": [shape.document() for shape in self.of]}, self.help)


@frozen
class Anything:
    """Any JSON value."""

    help: str = ""

    def check(self, value: Any, where: str) -> Any:
        return value

    def document(self) -> dict[str, Any]:
        return _described({}, self.help)


@frozen
class Null:
    def check(self, value: Any, where: str) -> None:
        if value is not None:
            raise Invalid(where, f"must be null, not {kind(value)}")

    def document(self) -> dict[str, Any]:
        return {"type": "null"}


def pointer(name: str) -> str:
    """A field's name as a step of a JSON Pointer, cut where it is too long to repeat."""
    short = name if len(name) <= SHOWN_MAX_CHARS else name[:SHOWN_MAX_CHARS] + "…"
    return short.replace("~", "~0").replace("/", "~1").encode(errors="backslashreplace").decode()


def named_parts(shapes: Iterable[Shape]) -> dict[str, dict[str, Any]]:
    """The components of a document: every named shape in these shapes, by name."""
    found: dict[str, dict[str, Any]] = {}
    left = list(shapes)
    while left:
        one = left.pop()
        if isinstance(one, Object | Either) and one.name:
            if one.name in found:
                assert found[one.name] == one.spelt_out(), f"two shapes are called {one.name}"
                continue
            found[one.name] = one.spelt_out()
        left += _parts(one)
    return {name: found[name] for name in sorted(found)}


def _parts(shape: Shape) -> Sequence[Shape]:
    match shape:
        case Object():
            return list(shape.fields.values())
        case Either():
            return shape.of
        case Many() | Mapped():
            return [shape.of]
        case _:
            return []


def _described(found: dict[str, Any], help: str, example: object = None) -> dict[str, Any]:
    if help:
        found["description"] = help
    if example is not None:
        found["examples"] = [example]
    return found
