"""Declarations of messages: one typed class for all versions of a message.

    @message(api=3, versions="0-13", flexible="9+")
    class MetadataRequest:
        topics: tuple[TopicWanted, ...] | None = wire(nullable="1+")
        allow_auto_topic_creation: bool = wire(since=4, default=True)

The annotation gives the type on the wire: `Int16` and the like an integer of that width, `str`, `bool`, `bytes`, `Id`
sixteen bytes, `Records` record batches that are not parsed, `tuple[X, ...]` an array, another declared class a struct.
`wire(...)` gives the first and last version of a field, the versions in which it is nullable, its tag and its default.
The order of the fields is their order on the wire. `@struct` declares a nested struct; its versions are those of the
message that contains it.

Rules:
- a field that some version lacks has a default, which is its value after decoding such a version;
- encoding a version that lacks the field fails for any other value, unless the field is `ignorable`;
- an annotation allows None if and only if `nullable` names versions;
- a tagged field has a default, and is not sent while it has that value.
"""

import struct as bytes_layout
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeVar, dataclass_transform

from tailrace.model.frozen import frozen
from tailrace.model.ids import Id
from tailrace.ports.disk import Buffer

T = TypeVar("T")


class Decorator(Protocol):
    def __call__(self, cls: type[T], /) -> type[T]: ...


VERSION_MAX: Final = 32767  # versions are int16


@frozen(kw_only=False)
class Fixed:
    """A value of fixed width, given as a format code of Python's `struct`."""

    code: str

    @property
    def size(self) -> int:
        return bytes_layout.calcsize(">" + self.code)


@frozen(kw_only=False)
class Sized:
    """Bytes preceded by their length."""

    form: typing.Literal["text", "bytes", "records"]


@frozen(kw_only=False)
class Array:
    element: "Kind"


@frozen(kw_only=False)
class Struct:
    declared: type


Kind = Fixed | Sized | Array | Struct

Int8 = Annotated[int, Fixed("b")]
Int16 = Annotated[int, Fixed("h")]
Int32 = Annotated[int, Fixed("i")]
Int64 = Annotated[int, Fixed("q")]
Uint16 = Annotated[int, Fixed("H")]
Uint32 = Annotated[int, Fixed("I")]
Float64 = Annotated[float, Fixed("d")]
Records = Annotated[Buffer, Sized("records")]

ID_KIND: Final = Fixed("16s")
PLAIN_KINDS: typing.Final[Mapping[object, Kind]] = types.MappingProxyType(
    {str: Sized("text"), bytes: Sized("bytes"), bool: Fixed("?"), Id: ID_KIND}
)


class Versions(NamedTuple):
    """A range of versions, both ends included; `none` is the empty range."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """`"3-7"`, `"9+"`, `"0"` or `"none"`."""
        if text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), VERSION_MAX)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


NO_VERSIONS: Final = Versions.parse("none")
ALL_VERSIONS: Final = Versions.parse("0+")


@frozen
class FieldOptions:
    """The options that `wire(...)` gave for one field."""

    versions: Versions
    nullable: Versions
    tag: int | None
    ignorable: bool


@frozen
class Field:
    """One field, as the compilers of encoders and decoders need it."""

    name: str
    label: str  # "Class.field", for error messages
    kind: Kind
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object  # MISSING: the field has no default
    ignorable: bool


@frozen
class Declaration:
    """The options that `@message` or `@record` gave for a class."""

    number: int  # the API key of a message, the type number of a stored record
    versions: Versions
    flexible: Versions


def wire(
    *,
    since: int = 0,
    until: int = VERSION_MAX,
    nullable: str = "none",
    tag: int | None = None,
    default: Any = MISSING,
    ignorable: bool = False,
) -> Any:
    versions = Versions(since, until)
    options = FieldOptions(versions=versions, nullable=Versions.parse(nullable), tag=tag, ignorable=ignorable)
    return field(default=default, metadata={"wire": options})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(wire,))
def struct(cls: type[T]) -> type[T]:
    """A struct nested in messages or stored records."""
    return frozen(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(wire,))
def message(*, api: int, versions: str, flexible: str) -> Decorator:
    """The body of a request or response of API `api`."""
    return _declare(api, versions, flexible)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(wire,))
def record(*, type: int, versions: str, flexible: str = "0+") -> Decorator:
    """A record that Tailrace stores in one of its internal partitions; see `wire.stored`."""
    return _declare(type, versions, flexible)


def _declare(number: int, versions: str, flexible: str) -> Decorator:
    declared = Declaration(number=number, versions=Versions.parse(versions), flexible=Versions.parse(flexible))

    def declare(cls: type[T]) -> type[T]:
        decorated = struct(cls)
        decorated.__wire__ = declared  # type: ignore[attr-defined]
        return decorated

    return declare


def declaration(cls: type) -> Declaration:
    declared = getattr(cls, "__wire__", None)
    if not isinstance(declared, Declaration):
        raise TypeError(f"{cls.__name__} is not declared with @message or @record")
    return declared


@cache
def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields in their order on the wire; raises TypeError if a declaration breaks a rule above."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(_field(cls, one.name, hints[one.name], one.metadata, one.default) for one in fields(cls))


def _field(cls: type, name: str, hint: Any, metadata: Any, default: object) -> Field:
    options: FieldOptions = metadata.get("wire") or wire().metadata["wire"]
    label = f"{cls.__name__}.{name}"
    kind, optional = _kind(label, hint)
    if optional != (options.nullable != NO_VERSIONS):
        raise TypeError(f"{label}: the annotation and nullable= disagree")
    if default is MISSING and (options.tag is not None or options.versions != ALL_VERSIONS):
        raise TypeError(f"{label}: a field that may be missing from the bytes needs a default")
    return Field(
        name=name,
        label=label,
        kind=kind,
        versions=options.versions,
        nullable=options.nullable,
        tag=options.tag,
        default=default,
        ignorable=options.ignorable,
    )


def _kind(label: str, hint: Any) -> tuple[Kind, bool]:
    """The kind of an annotation, and whether it allows None."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [part for part in parts if part is not types.NoneType]
        if len(inner) == 1:
            return _kind(label, inner[0])[0], True
    if origin is Annotated and isinstance(parts[-1], Fixed | Sized):
        return parts[-1], False
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return Array(_kind(label, parts[0])[0]), False
    if hint in PLAIN_KINDS:
        return PLAIN_KINDS[hint], False
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return Struct(hint), False
    raise TypeError(f"{label}: {hint} has no encoding; for integers use Int8, Int16, Int32 or Int64")
