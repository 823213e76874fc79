"""Frozen, slotted, keyword-only dataclasses that cost next to nothing until they are used.

A broker imports hundreds of declared classes and uses a few dozen. `dataclass` compiles six functions for each, about
half a millisecond in all. Here the class is still a dataclass to everybody (`fields`, `replace`, `asdict`), but five of
the six are shared by all classes and `__init__` is compiled when the first value is made.
"""

from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from typing import Any, NoReturn, TypeVar

from tailrace.wire.source import Source

T = TypeVar("T")


def value_class(cls: type[T]) -> type[T]:
    for function in (_init, _setattr, _delattr, _eq, _hash, _repr):
        setattr(cls, f"_{function.__name__}__", function)
    return dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)


def _init(self: Any, **given: Any) -> None:
    cls = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, **given)


def _compile_init(cls: type[Any]) -> Any:
    """`__init__` as one would write it, if one could set the slots of a frozen object."""
    arguments, body = [], []
    source = Source()
    for field in fields(cls):
        default = "" if field.default is MISSING else f"={source.bind('default', field.default)}"
        arguments.append(f"{field.name}{default}")
        body.append(f"{source.bind('set', getattr(cls, field.name).__set__)}(self, {field.name})")
    with source.block(f"def __init__(self{', *' if arguments else ''}{''.join(f', {one}' for one in arguments)}):"):
        for line in body or ["pass"]:
            source.line(line)
    return source.build("__init__", cls.__name__)


def _setattr(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to {type(self).__name__}.{name}")


def _delattr(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete {type(self).__name__}.{name}")


def _parts(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, name) for name in value.__slots__)


def _eq(self: Any, other: object) -> Any:
    if self is other:
        return True
    return _parts(self) == _parts(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_parts(self))


def _repr(self: Any) -> str:
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__name__}({parts})"
