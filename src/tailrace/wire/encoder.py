"""Compiler of encoders: the fields of a struct in one version become one function, `encode(value, out)`.

Consecutive values of fixed width, lengths of versions that are not flexible among them, are written by one
`struct.pack`. All other values are written one by one:

    def encode(value, out):
        out += PACK_1(value.error_code, value.partition, value.leader_id)
        array_2 = value.replica_nodes
        size_3 = len(array_2) + 1
        if size_3 < 128: out.append(size_3)
        else: out += uvarint(size_3)
        out += array_packer('i', len(array_2))(*array_2)
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, assert_never

from tailrace.model.limits import CLIENT_TEXT_MAX_BYTES
from tailrace.model.python_source import Source
from tailrace.wire import primitives
from tailrace.wire.schema import ID_KIND, NO_VERSIONS, Array, Field, Fixed, Kind, Sized, Struct, fields_of

Encode = Callable[[Any, bytearray], None]

NULL_TEXT: Final = b"\xff\xff"
NULL_LONG: Final = b"\xff\xff\xff\xff"
NULL_COMPACT: Final = b"\x00"
NULL_STRUCT: Final = b"\xff"
PRESENT_STRUCT: Final = 1


@cache
def encoder(cls: type, version: int, flexible: bool) -> Encode:
    return _Encoder(cls, version, flexible).compile()


class _Encoder:
    def __init__(self, cls: type, version: int, flexible: bool) -> None:
        self._cls = cls
        self._version = version
        self._flexible = flexible
        self._out = "out"
        self._run: list[tuple[str, str]] = []  # fixed values to write next: struct codes and expressions
        self._source = Source(vars(primitives))

    def compile(self) -> Encode:
        with self._source.block("def encode(value, out):"):
            tagged: list[Field] = []
            for field in fields_of(self._cls):
                if self._version not in field.versions:
                    self._refuse_unless_default(field)
                elif field.tag is not None:
                    tagged.append(field)
                else:
                    self._field(field, f"value.{field.name}")
            if self._flexible:
                self._tags(sorted(tagged, key=lambda field: field.tag or 0))
            self._flush()
            self._source.line("return")
        encode: Encode = self._source.build("encode", f"{self._cls.__name__} version {self._version}, encode")
        return encode

    def _refuse_unless_default(self, field: Field) -> None:
        if field.ignorable:
            return
        default = self._source.bind("default", field.default)
        with self._source.block(f"if value.{field.name} != {default}:"):
            self._source.line(f"raise field_not_in_version({field.label!r}, {self._version}, value.{field.name})")

    def _field(self, field: Field, expression: str) -> None:
        if isinstance(field.kind, Fixed) and field.kind != ID_KIND:
            self._fixed(field.kind.code, expression)
            return
        name = self._source.fresh(field.name)
        self._source.line(f"{name} = {expression}")
        if self._version in field.nullable:
            self._nullable(field, name)
            return
        if field.nullable != NO_VERSIONS:  # nullable in other versions, so the type checker lets None through
            with self._source.block(f"if {name} is None:"):
                self._source.line(f"raise null_not_allowed({f'{field.label} in version {self._version}'!r})")
        self._value(field.kind, name, field.label)

    def _nullable(self, field: Field, name: str) -> None:
        self._flush()
        with self._source.block(f"if {name} is None:"):
            self._source.line(f"{self._out} += {self._null(field.kind)!r}")
        with self._source.block("else:"):
            if isinstance(field.kind, Struct):
                self._fixed("b", str(PRESENT_STRUCT))
            self._value(field.kind, name, field.label)
            self._flush()

    def _null(self, kind: Kind) -> bytes:
        if isinstance(kind, Struct):
            return NULL_STRUCT
        if self._flexible:
            return NULL_COMPACT
        return NULL_TEXT if kind == Sized("text") else NULL_LONG

    def _value(self, kind: Kind, name: str, label: str) -> None:
        match kind:
            case Fixed(code):
                if kind == ID_KIND:
                    with self._source.block(f"if len({name}) != 16:"):
                        self._source.line(f"raise id_size_wrong({label!r}, {name})")
                self._fixed(code, name)
            case Sized("text"):
                self._text(name, label)
            case Sized():
                self._length(f"len({name})", "i")
                self._raw(name)
            case Array(element):
                self._length(f"len({name})", "i")
                self._flush()
                self._elements(element, name, label)
            case Struct(declared):
                self._flush()
                self._source.line(f"{self._struct(declared)}({name}, {self._out})")
            case _:
                assert_never(kind)

    def _text(self, name: str, label: str) -> None:
        raw = self._source.fresh("raw")
        self._source.line(f"{raw} = {name}.encode()")
        with self._source.block(f"if len({raw}) > {CLIENT_TEXT_MAX_BYTES}:"):
            self._source.line(f"raise text_too_long({label!r}, len({raw}), 0)")
        self._length(f"len({raw})", "h")
        self._raw(raw)

    def _elements(self, element: Kind, name: str, label: str) -> None:
        if isinstance(element, Fixed) and element != ID_KIND:
            self._source.line(f"{self._out} += array_packer({element.code!r}, len({name}))(*{name})")
            return
        item = self._source.fresh("item")
        with self._source.block(f"for {item} in {name}:"):
            self._value(element, item, label)
            self._flush()

    def _tags(self, tagged: list[Field]) -> None:
        if not tagged:
            self._fixed("B", "0")
            return
        self._flush()
        defaults = [self._source.bind("default", field.default) for field in tagged]
        conditions = [f"value.{field.name} != {default}" for field, default in zip(tagged, defaults, strict=True)]
        count = self._source.fresh("tags")
        self._source.line(f"{count} = {' + '.join(f'({condition})' for condition in conditions)}")
        self._source.line(f"{self._out}.append({count})")
        with self._source.block(f"if {count}:"):
            for field, condition in zip(tagged, conditions, strict=True):
                with self._source.block(f"if {condition}:"):
                    self._tag(field)

    def _tag(self, field: Field) -> None:
        body = self._source.fresh("body")
        self._source.line(f"{body} = bytearray()")
        outer, self._out = self._out, body
        self._field(field, f"value.{field.name}")
        self._flush()
        self._out = outer
        self._source.line(f"{outer} += {primitives.uvarint(field.tag or 0)!r} + uvarint(len({body})) + {body}")

    def _length(self, size: str, code: str) -> None:
        if not self._flexible:
            self._fixed(code, size)
            return
        self._flush()
        name = self._source.fresh("size")
        self._source.line(f"{name} = {size} + 1")
        self._source.line(f"if {name} < 128: {self._out}.append({name})")
        self._source.line(f"else: {self._out} += uvarint({name})")

    def _struct(self, declared: type) -> str:
        return self._source.bind("encode", encoder(declared, self._version, self._flexible))

    def _raw(self, name: str) -> None:
        self._flush()
        self._source.line(f"{self._out} += {name}")

    def _fixed(self, code: str, expression: str) -> None:
        self._run.append((code, expression))

    def _flush(self) -> None:
        if not self._run:
            return
        layout = struct.Struct(">" + "".join(code for code, _ in self._run))
        expressions = [expression for _, expression in self._run]
        self._run = []
        if all(expression.isdigit() for expression in expressions):
            self._source.line(f"{self._out} += {layout.pack(*map(int, expressions))!r}")
            return
        pack = self._source.bind("pack", layout.pack)
        self._source.line(f"{self._out} += {pack}({', '.join(expressions)})")
