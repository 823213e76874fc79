"""Frozen, slotted dataclasses that cost almost nothing until they are used.

    @frozen
    class Committed:
        offset: int
        epoch: int = -1

A broker imports hundreds of such classes and uses some dozens. `dataclass` compiles eight functions for each class,
which takes about a millisecond. A class declared with `frozen` is a dataclass as well (`fields`, `replace` and `asdict`
work), but its `__init__`, `__eq__` and `__hash__` are compiled at their first call, and the other methods are shared by
all classes. Fields are keyword-only, except with `@frozen(kw_only=False)`.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import partial
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

from tailrace.model.python_source import Source

T = TypeVar("T")


@overload
@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T], /) -> type[T]: ...
@overload
@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...
def frozen(cls: type[T] | None = None, /, *, kw_only: bool = True) -> type[T] | Callable[[type[T]], type[T]]:
    def declare(cls: type[T]) -> type[T]:
        for function in (_init, _setattr, _delattr, _eq, _hash, _repr, _reduce):
            setattr(cls, f"_{function.__name__}__", function)
        if not cls.__doc__:
            cls.__doc__ = cls.__name__  # `dataclass` would make one of the signature, which is slow
        return dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)

    return declare if cls is None else declare(cls)


def _init(self: Any, *given: Any, **named: Any) -> None:
    cls = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, *given, **named)


def _compile_init(cls: type[Any]) -> Any:
    """`__init__` that sets the slots directly, since the class refuses `setattr`."""
    positional: list[str] = []
    by_keyword: list[str] = []
    body: list[str] = []
    source = Source()
    for one in fields(cls):
        default, given = "", one.name
        if one.default is not MISSING:
            default = f"={source.bind('default', one.default)}"
        elif one.default_factory is not MISSING:
            make, absent = source.bind("make", one.default_factory), source.bind("absent", MISSING)
            default, given = f"={absent}", f"{make}() if {one.name} is {absent} else {one.name}"
        (by_keyword if one.kw_only else positional).append(f", {one.name}{default}")
        body.append(f"{source.bind('set', getattr(cls, one.name).__set__)}(self, {given})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    with source.block(f"def __init__(self{''.join(positional)}{', *' if by_keyword else ''}{''.join(by_keyword)}):"):
        for line in body or ["pass"]:
            source.line(line)
    return source.build("__init__", cls.__name__)


def _setattr(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to {type(self).__name__}.{name}")


def _delattr(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete {type(self).__name__}.{name}")


def _eq(self: Any, other: object) -> Any:
    cls: Any = type(self)
    answer = "({mine}) == ({theirs}) if type(other) is type(self) else NotImplemented"
    cls.__eq__ = _compile(cls, "__eq__", ", other", answer)
    return cls.__eq__(self, other)


def _hash(self: Any) -> Any:
    cls: Any = type(self)
    cls.__hash__ = _compile(cls, "__hash__", "", "hash(({mine}))")
    return cls.__hash__(self)


def _compile(cls: type[Any], name: str, others: str, answer: str) -> Any:
    compared = [one.name for one in fields(cls) if one.compare]
    mine, theirs = ("".join(f"{whose}.{one}, " for one in compared) for whose in ("self", "other"))
    source = Source()
    with source.block(f"def {name}(self{others}):"):
        source.line("return " + answer.format(mine=mine, theirs=theirs))
    return source.build(name, cls.__name__)


def _repr(self: Any) -> str:
    parts = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__name__}({parts})"


def _reduce(self: Any) -> Any:
    cls: Any = type(self)
    return partial(cls, **{one.name: getattr(self, one.name) for one in fields(cls)}), ()
