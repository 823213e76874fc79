"""Compiler of decoders: the fields of a struct in one version become one function, `decode(view, at, limit, left)`.

The function returns the value and the position after it. Consecutive values of fixed width are read by one
`struct.unpack`. No allocation trusts a declared length: a size is checked against the bytes before `limit`, an element
count against the minimum size of so many elements, and the elements of all arrays together against `left`, a list with
one number, the elements that the message may still have. Arrays of plain numbers do not count towards `left`, because
one `unpack` reads them. Reading a fixed value past the end raises `struct.error` or IndexError, which `wire.compile`
turns into WireError: valid messages pay nothing for that check.

    def decode(view, at, limit, left):
        error_code, partition, leader_id, size_1 = UNPACK_2(view, at)
        at += 14
        if not 0 <= size_1 <= 1000000 or size_1 * 4 > limit - at: raise count_too_large(…)
        replica_nodes = array_unpacker('i', size_1)(view, at)
        at += size_1 * 4
        return NEW_3(error_code=error_code, …), at
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, assert_never

from tailrace.model.limits import ARRAY_MAX_ELEMENTS, CLIENT_TEXT_MAX_BYTES, TAGGED_FIELDS_MAX
from tailrace.model.python_source import Source
from tailrace.wire import primitives
from tailrace.wire.schema import ID_KIND, Array, Field, Fixed, Kind, Sized, Struct, fields_of

Decode = Callable[[memoryview, int, int, list[int]], tuple[Any, int]]


@cache
def decoder(cls: type, version: int, flexible: bool) -> Decode:
    return _Decoder(cls, version, flexible).compile()


class _Decoder:
    def __init__(self, cls: type, version: int, flexible: bool) -> None:
        self._cls = cls
        self._version = version
        self._flexible = flexible
        self._limit = "limit"
        self._run: list[tuple[str, str]] = []  # fixed values to read next: struct codes and variable names
        self._source = Source(vars(primitives))

    def compile(self) -> Decode:
        present = [field for field in fields_of(self._cls) if self._version in field.versions]
        with self._source.block("def decode(view, at, limit, left):"):
            for field in present:
                if field.tag is None:
                    self._field(field)
            self._flush()
            if self._flexible:
                self._tags([field for field in present if field.tag is not None])
            new = self._source.bind("new", self._cls)
            arguments = ", ".join(f"{field.name}=v_{field.name}" for field in present)
            self._source.line(f"return {new}({arguments}), at")
        decode: Decode = self._source.build("decode", f"{self._cls.__name__} version {self._version}, decode")
        return decode

    def _field(self, field: Field) -> None:
        self._value(field.kind, f"v_{field.name}", field.label, self._version in field.nullable)

    def _value(self, kind: Kind, name: str, label: str, nullable: bool) -> None:
        match kind:
            case Fixed(code):
                self._run.append((code, name))
            case Sized(form):
                size = self._length("h" if form == "text" else "i")
                self._unless_null(size, name, nullable, lambda: self._sized(form, name, size, label))
            case Array(element):
                size = self._length("i")
                self._unless_null(size, name, nullable, lambda: self._array(element, name, size, label))
            case Struct(declared):
                self._struct(declared, name, nullable)
            case _:
                assert_never(kind)

    def _unless_null(self, size: str, name: str, nullable: bool, read: Callable[[], None]) -> None:
        if not nullable:
            read()
            return
        with self._source.block(f"if {size} < 0:"):
            self._source.line(f"{name} = None")
        with self._source.block("else:"):
            read()

    def _sized(self, form: str, name: str, size: str, label: str) -> None:
        if form == "text":
            bound, refusal = f"0 <= {size} <= {CLIENT_TEXT_MAX_BYTES}", "text_too_long"
        else:
            bound, refusal = f"0 <= {size}", "size_too_large"
        with self._source.block(f"if not {bound} or {size} > {self._limit} - at:"):
            self._source.line(f"raise {refusal}({label!r}, {size}, {self._limit} - at)")
        piece = f"view[at:at + {size}]"
        value = {"text": f"str({piece}, 'utf-8')", "bytes": f"bytes({piece})", "records": piece}[form]
        self._source.line(f"{name} = {value}")
        self._source.line(f"at += {size}")

    def _array(self, element: Kind, name: str, size: str, label: str) -> None:
        element_min_bytes = max(1, _min_bytes(element, self._version, self._flexible))
        refused = f"not 0 <= {size} <= {ARRAY_MAX_ELEMENTS} or {size} * {element_min_bytes} > {self._limit} - at"
        with self._source.block(f"if {refused}:"):
            self._source.line(f"raise count_too_large({label!r}, {size}, {element_min_bytes}, {self._limit} - at)")
        if isinstance(element, Fixed) and element != ID_KIND:
            self._source.line(f"{name} = array_unpacker({element.code!r}, {size})(view, at)")
            self._source.line(f"at += {size} * {element_min_bytes}")
            return
        self._source.line(f"left[0] -= {size}")
        self._source.line(f"if left[0] < 0: raise too_many_elements({label!r})")
        items, item = self._source.fresh("items"), self._source.fresh("item")
        self._source.line(f"{items} = []")
        with self._source.block(f"for _ in range({size}):"):
            self._value(element, item, label, False)
            self._flush()
            self._source.line(f"{items}.append({item})")
        self._source.line(f"{name} = tuple({items})")

    def _struct(self, declared: type, name: str, nullable: bool) -> None:
        decode = self._source.bind("decode", decoder(declared, self._version, self._flexible))
        call = f"{name}, at = {decode}(view, at, {self._limit}, left)"
        if not nullable:
            self._flush()
            self._source.line(call)
            return
        marker = self._source.fresh("marker")
        self._run.append(("b", marker))
        self._flush()
        with self._source.block(f"if {marker} < 0:"):
            self._source.line(f"{name} = None")
        with self._source.block("else:"):
            self._source.line(call)

    def _tags(self, tagged: list[Field]) -> None:
        if not tagged:
            self._source.line("if view[at]: at = skip_tags(view, at, limit)")
            self._source.line("else: at += 1")
            return
        for field in tagged:
            default = self._source.bind("default", field.default)
            self._source.line(f"v_{field.name} = {default}")
        count = self._uvarint("count")
        with self._source.block(f"if {count} > {TAGGED_FIELDS_MAX}:"):
            self._source.line(f"raise too_many_tags({self._cls.__name__!r}, {count})")
        with self._source.block(f"for _ in range({count}):"):
            self._tag(tagged)

    def _tag(self, tagged: list[Field]) -> None:
        tag, size = self._uvarint("tag"), self._uvarint("size")
        label = f"a tagged field of {self._cls.__name__}"
        with self._source.block(f"if {size} > limit - at:"):
            self._source.line(f"raise size_too_large({label!r}, {size}, limit - at)")
        self._source.line(f"end = at + {size}")
        self._limit = "end"
        for field in tagged:
            with self._source.block(f"if {tag} == {field.tag}:"):
                self._field(field)
                self._flush()
                with self._source.block("if at != end:"):
                    self._source.line(f"raise tag_size_wrong({self._cls.__name__!r}, {tag}, {size})")
        self._limit = "limit"
        self._source.line("at = end")

    def _length(self, code: str) -> str:
        """The variable that holds a length; negative means null."""
        if not self._flexible:
            size = self._source.fresh("size")
            self._run.append((code, size))
            self._flush()
            return size
        self._flush()
        size = self._uvarint("size")
        self._source.line(f"{size} -= 1")
        return size

    def _uvarint(self, hint: str) -> str:
        name = self._source.fresh(hint)
        self._source.line(f"{name} = view[at]")
        self._source.line("at += 1")
        self._source.line(f"if {name} > 127: {name}, at = read_long_uvarint({name}, view, at)")
        return name

    def _flush(self) -> None:
        if not self._run:
            return
        layout = struct.Struct(">" + "".join(code for code, _ in self._run))
        names = ", ".join(name for _, name in self._run)
        self._run = []
        unpack = self._source.bind("unpack", layout.unpack_from)
        self._source.line(f"{names}, = {unpack}(view, at)")
        self._source.line(f"at += {layout.size}")


def _min_bytes(kind: Kind, version: int, flexible: bool) -> int:
    """The size of the smallest encoding of this kind; a null text or array is as small as an empty one."""
    match kind:
        case Fixed():
            return kind.size
        case Sized(form):
            return 1 if flexible else 2 if form == "text" else 4
        case Array():
            return 1 if flexible else 4
        case Struct(declared):
            present = [field for field in fields_of(declared) if version in field.versions and field.tag is None]
            return int(flexible) + sum(_min_field_bytes(field, version, flexible) for field in present)
        case _:
            assert_never(kind)


def _min_field_bytes(field: Field, version: int, flexible: bool) -> int:
    if isinstance(field.kind, Struct) and version in field.nullable:
        return 1
    return _min_bytes(field.kind, version, flexible)
