"""The order rule: iteration over a set is found (DESIGN, section 3)."""

import pytest

from checks.order import depends_on_set_order
from tests.tidy.planted import planted


@pytest.mark.parametrize(
    "code",
    [
        "for x in {1, 2}: pass",
        "for x in set(names): pass",
        "[x for x in {y for y in names}]",
        "{x: 1 for x in frozenset(names)}",
        "list(set(names))",
        "f(*{1, 2})",
        "', '.join({'a', 'b'})",
        "for x in set(a) - b: pass",
        "for x in set(a).union(b): pass",
        "next(iter({1, 2}))",
        "for i, x in enumerate({1, 2}): pass",
        "def f(names: set[str]):\n    for x in names: pass",
        "def f(names: 'frozenset[str]'):\n    return [x for x in names]",
        "def f():\n    seen = set()\n    for x in seen: pass",
        "def f():\n    if a:\n        seen: set[int] = g()\n    return tuple(seen)",
        "class C:\n    def f(self):\n        self.a: set[int] = g()\n    def g(self):\n        for x in self.a: pass",
        "class C:\n    a: set[int]\n    def f(self):\n        return self.a.pop()",
        "def f(names: AbstractSet[str]):\n    yield from names",
    ],
)
def test_iteration_over_a_set_is_found(code: str) -> None:
    assert len(depends_on_set_order(planted(code))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "for x in sorted({1, 2}): pass",
        "x in {1, 2}",
        "any(x > 1 for x in {1, 2})",
        "{x + 1 for x in {1, 2}}",
        "len(set(names))",
        "for x in dict.fromkeys(names): pass",
        "for x in names: pass",
        "def f():\n    names = set()\ndef g(names: list[str]):\n    for x in names: pass",
        "stack.pop()",
        "flags = a | b\nfor x in flags: pass",
    ],
)
def test_iteration_whose_order_does_not_matter_is_allowed(code: str) -> None:
    assert depends_on_set_order(planted(code)) == []


@pytest.mark.parametrize("name", ["wait", "TaskGroup", "all_tasks", "as_completed"])
def test_the_parts_of_asyncio_that_keep_sets_are_found(name: str) -> None:
    assert len(depends_on_set_order(planted(f"import asyncio\nasyncio.{name}(tasks)"))) == 1
    assert depends_on_set_order(planted(f"from asyncio import {name} as w\nw(tasks)"))


def test_rooms_above_the_doors_may_iterate_over_sets() -> None:
    assert depends_on_set_order(planted("for x in {1, 2}: pass", "src/tailrace/cli/main.py")) == []
