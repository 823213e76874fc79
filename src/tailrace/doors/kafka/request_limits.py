"""What a request names, each thing once and no more of them than a request may.

A number of four bytes can stand for an answer of megabytes: who names the same partition or group a million times would
otherwise have them all, and hold up the loop meanwhile. Clients name nothing twice, nor more than a broker has; who
does is not told so thing by thing, but loses its connection, as with every frame that lies about its size.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from tailrace.model.limits import NAMES_PER_REQUEST_MAX, NAMES_PER_TURN_MAX
from tailrace.wire.primitives import WireError

T = TypeVar("T")
A = TypeVar("A")


def once(names: Iterable[T], at_most: int = NAMES_PER_REQUEST_MAX) -> dict[T, None]:
    """What is named, in the order in which it first is."""
    found = dict.fromkeys(names)
    require_few(len(found), at_most)
    return found


def partitions_once(
    named: Iterable[tuple[T, Sequence[int]]], at_most: int = NAMES_PER_REQUEST_MAX
) -> dict[T, dict[int, None]]:
    """The partitions that are named of each topic, in the order in which they first are."""
    found: dict[T, dict[int, None]] = {}
    for topic, numbers in named:
        found.setdefault(topic, {}).update(dict.fromkeys(numbers))
    require_few(sum(map(len, found.values())), at_most)
    return found


async def each(names: Iterable[T], ask: Callable[[T], Awaitable[A]]) -> list[A]:
    """What is said of one name after the other; others have their turn now and then."""
    answers: list[A] = []
    for count, name in enumerate(names, 1):
        answers.append(await ask(name))
        if count % NAMES_PER_TURN_MAX == 0:
            await asyncio.sleep(0)
    return answers


async def together(names: Sequence[T], ask: Callable[[T], Awaitable[A]]) -> list[A]:
    """As `each`, for what has to wait for others: as many at once as one turn may begin with."""
    answers: list[A] = []
    for first in range(0, len(names), NAMES_PER_TURN_MAX):
        answers += await asyncio.gather(*map(ask, names[first : first + NAMES_PER_TURN_MAX]))
    return answers


def require_few(count: int, at_most: int = NAMES_PER_REQUEST_MAX) -> None:
    if count > at_most:
        raise WireError(f"{count} things are named where a request may name {at_most}")
