"""What a service sees of a call: who calls, until when, and for streams the messages in both directions.

A unary method is a coroutine from a request to a response. A streaming method reads requests and writes responses of
its `Stream`, and ends the stream by returning. Both raise a `ClientError` or `Fault` for what the caller has to know.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from tailrace.client.faults import ClientError
from tailrace.model.caller import Caller
from tailrace.model.frozen import frozen


@frozen
class Call:
    caller: Caller
    deadline_s: float | None = None  # how long the caller waits from now on; None: as long as it takes

    def within_s(self, at_most: float) -> float:
        """The time there is for something that takes at most so long."""
        return at_most if self.deadline_s is None else max(0.0, min(self.deadline_s, at_most))


class Failed(Exception):
    """A call fails for a reason, with details of its own beside those that every such failure has."""

    def __init__(self, problem: ClientError, details: Sequence[Any]) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.details = details


class Stream(Protocol):
    @property
    def call(self) -> Call: ...

    async def read(self) -> Any | None:
        """The next request; None when the client has ended its side."""

    async def write(self, response: Any) -> None:
        """Send a response. Waits while the client does not read."""


Unary = Callable[[Any, Call], Awaitable[Any]]
Streaming = Callable[[Stream], Awaitable[None]]


@frozen
class Service:
    """A service: for each of its methods one that serves it."""

    name: str  # in full, with its package
    unary: Mapping[str, Unary]
    streaming: Mapping[str, Streaming]


async def both_sides(taking: Coroutine[Any, Any, None], sending: Coroutine[Any, Any, None]) -> None:
    """Serve both sides of a stream until the client has ended its own, or either fails; sending ends with the other."""
    loop = asyncio.get_running_loop()
    sides = [loop.create_task(taking), loop.create_task(sending)]
    ended: asyncio.Future[None] = loop.create_future()

    def end(_: object) -> None:
        if not ended.done():
            ended.set_result(None)

    for side in sides:
        side.add_done_callback(end)
    try:
        await ended
        for side in sides:
            if side.done():
                side.result()
    finally:
        for side in sides:
            side.cancel()
        for side in sides:  # until nothing of them uses the stream any more
            with suppress(asyncio.CancelledError, Exception):
                await side
