"""Limits on the entries of one request (topics, partitions, groups): no duplicates, and not too many.

Four bytes of a request can cause kilobytes of response: a client that names the same partition or group a million times
would take the broker's memory and block the event loop. Real clients have no reason for that. Duplicates are answered
once or refused; a request with too many entries is malformed, and its connection is closed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from tailrace.model.limits import NAMES_PER_REQUEST_MAX, NAMES_PER_TURN_MAX
from tailrace.wire.primitives import WireError

T = TypeVar("T")
A = TypeVar("A")


def once(names: Iterable[T], at_most: int = NAMES_PER_REQUEST_MAX) -> dict[T, None]:
    """The names without duplicates, in order of first occurrence."""
    found = dict.fromkeys(names)
    require_few(len(found), at_most)
    return found


def partitions_once(
    named: Iterable[tuple[T, Sequence[int]]], at_most: int = NAMES_PER_REQUEST_MAX
) -> dict[T, dict[int, None]]:
    """The partitions of each topic without duplicates, in order of first occurrence."""
    found: dict[T, dict[int, None]] = {}
    for topic, numbers in named:
        found.setdefault(topic, {}).update(dict.fromkeys(numbers))
    require_few(sum(map(len, found.values())), at_most)
    return found


async def each(names: Iterable[T], ask: Callable[[T], Awaitable[A]]) -> list[A]:
    """Call `ask` for one name after the other, yielding to the event loop now and then."""
    answers: list[A] = []
    for count, name in enumerate(names, 1):
        answers.append(await ask(name))
        if count % NAMES_PER_TURN_MAX == 0:
            await asyncio.sleep(0)
    return answers


async def together(names: Sequence[T], ask: Callable[[T], Awaitable[A]]) -> list[A]:
    """As `each`, but concurrently, `NAMES_PER_TURN_MAX` at once."""
    answers: list[A] = []
    for first in range(0, len(names), NAMES_PER_TURN_MAX):
        answers += await asyncio.gather(*map(ask, names[first : first + NAMES_PER_TURN_MAX]))
    return answers


def require_few(count: int, at_most: int = NAMES_PER_REQUEST_MAX) -> None:
    if count > at_most:
        raise WireError(f"the request has {count} entries, at most {at_most} are allowed")


def repeated(names: Iterable[T]) -> dict[T, None]:
    """The names that occur more than once, in order of first occurrence; a dict, because callers look up many."""
    counts: dict[T, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return {name: None for name, count in counts.items() if count > 1}
