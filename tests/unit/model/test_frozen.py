"""Frozen values behave like frozen dataclasses."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from tailrace.model.frozen import frozen


@frozen
class Point:
    x: int
    y: int = 2
    seen: list[int] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@frozen
class Deep(Point):
    z: int = 3

    def __post_init__(self) -> None:
        if self.z < 0:
            raise ValueError("too deep")


@frozen(kw_only=False)
class Pair:
    first: int
    second: str = "b"


@dataclass(frozen=True, slots=True)
class Twin:
    first: int
    second: str = "b"


@frozen
class Empty: ...


def test_fields_are_keyword_only_and_have_defaults() -> None:
    point = Point(x=1)
    assert (point.x, point.y, point.seen, point.note) == (1, 2, [], "")
    assert Point(x=1).seen is not point.seen
    assert Point(x=1, seen=[4]).seen == [4]
    with pytest.raises(TypeError, match="positional"):
        Point(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="x"):
        Point()  # type: ignore[call-arg]


def test_fields_may_be_declared_positional() -> None:
    assert Pair(1) == Pair(first=1, second="b") != Pair(1, "c")
    assert repr(Pair(1)) == repr(Twin(1)).replace("Twin", "Pair")
    assert hash(Pair(1)) == hash(Twin(1))


def test_values_of_one_class_are_equal_if_their_compared_fields_are() -> None:
    assert Point(x=1, note="a") == Point(x=1, note="b")
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Deep(x=1)
    assert Pair(1) != object()
    assert Empty() == Empty()
    assert len({Empty(), Empty(), Pair(1), Pair(1)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(x=1))


def test_inherited_fields_count() -> None:
    deep = Deep(x=1, z=5)
    assert repr(deep) == "Deep(x=1, y=2, seen=[], z=5)"
    assert deep != Deep(x=2, z=5)
    with pytest.raises(ValueError, match="too deep"):
        Deep(x=1, z=-1)


def test_values_cannot_be_changed() -> None:
    pair = Pair(1)
    with pytest.raises(FrozenInstanceError, match=r"Pair\.first"):
        pair.first = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match=r"Pair\.first"):
        del pair.first
    with pytest.raises(FrozenInstanceError):
        pair.third = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("one", [Point(x=1, seen=[2]), Deep(x=7), Pair(1, "z"), Empty()])
def test_values_can_be_copied_pickled_and_replaced(one: Point | Pair | Empty) -> None:
    assert copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == replace(one) == one
    assert [one.name for one in fields(Deep)] == ["x", "y", "seen", "note", "z"]
