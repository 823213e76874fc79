"""Bounds on what one request names: each thing once, and no more things than a request may name.

Four bytes of a request can stand for megabytes of an answer: a client that names the same partition or group a million
times would otherwise get them all, and block the event loop meanwhile. Real clients name nothing twice, nor more than a
broker has; one that does loses its connection, as with every frame that lies about its size.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from tailrace.model.limits import NAMES_PER_REQUEST_MAX, NAMES_PER_TURN_MAX
from tailrace.wire.primitives import WireError

T = TypeVar("T")
A = TypeVar("A")


def once(names: Iterable[T], at_most: int = NAMES_PER_REQUEST_MAX) -> dict[T, None]:
    """The names, each in its first place."""
    found = dict.fromkeys(names)
    require_few(len(found), at_most)
    return found


def partitions_once(
    named: Iterable[tuple[T, Sequence[int]]], at_most: int = NAMES_PER_REQUEST_MAX
) -> dict[T, dict[int, None]]:
    """The partitions that are named of each topic, each in its first place."""
    found: dict[T, dict[int, None]] = {}
    for topic, numbers in named:
        found.setdefault(topic, {}).update(dict.fromkeys(numbers))
    require_few(sum(map(len, found.values())), at_most)
    return found


async def each(names: Iterable[T], ask: Callable[[T], Awaitable[A]]) -> list[A]:
    """The answers for one name after the other, yielding to the loop now and then."""
    answers: list[A] = []
    for count, name in enumerate(names, 1):
        answers.append(await ask(name))
        if count % NAMES_PER_TURN_MAX == 0:
            await asyncio.sleep(0)
    return answers


async def together(names: Sequence[T], ask: Callable[[T], Awaitable[A]]) -> list[A]:
    """As `each`, concurrently: as many at once as one iteration of the loop may begin."""
    answers: list[A] = []
    for first in range(0, len(names), NAMES_PER_TURN_MAX):
        answers += await asyncio.gather(*map(ask, names[first : first + NAMES_PER_TURN_MAX]))
    return answers


def require_few(count: int, at_most: int = NAMES_PER_REQUEST_MAX) -> None:
    if count > at_most:
        raise WireError(f"{count} things are named where a request may name {at_most}")


def repeated(names: Iterable[T]) -> dict[T, None]:
    """What is named more than once, each in its first place; quick to look up, as there may be very many."""
    counts: dict[T, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return {name: None for name, count in counts.items() if count > 1}
