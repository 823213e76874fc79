"""The requests of unary calls are read here, so that those who send slowly cost little and delay nobody.

gRPC reads a request of a unary call before it calls the handler, without a bound on time: some connections with calls
whose requests never end would take all places of the door. And as soon as somebody waits for a message, gRPC lets the
client send all of it, up to GRPC_MESSAGE_MAX_BYTES. Therefore at most `GRPC_READS_MAX` requests are read at a time;
what fits into a stream's window (GRPC_WINDOW_BYTES) has arrived before and is read at once. While others wait, a
request that takes longer than `SLOW_S` loses its place.
"""

import asyncio
from collections import deque
from typing import Any, Final

from tailrace.client.faults import Refused
from tailrace.model.limits import GRPC_READ_MAX_S, GRPC_READS_MAX
from tailrace.wire.errors import Error

SLOW_S: Final = 0.25


class Reading:
    def __init__(self) -> None:
        self._under_way: dict[asyncio.Timeout, float] = {}  # by when they began, the oldest first
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def read(self, context: Any) -> Any:
        """The request, as gRPC gives it. Refused if it does not come in time."""
        if len(self._under_way) >= GRPC_READS_MAX:
            await self._turn()
        now = asyncio.get_running_loop().time()
        limit = asyncio.timeout_at(now + GRPC_READ_MAX_S)
        try:
            async with limit:
                self._under_way[limit] = now
                if self._waiting:
                    self._hurry()
                return await context.read()
        except TimeoutError:
            raise Refused(Error.REQUEST_TIMED_OUT, "read the request", "it did not come completely in time") from None
        finally:
            self._under_way.pop(limit, None)
            self._next()

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._hurry()
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._next()  # the place was given to this call, which does not take it
            raise

    def _next(self) -> None:
        while self._waiting and len(self._under_way) < GRPC_READS_MAX:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _hurry(self) -> None:
        """Others wait: those that have been read for the longest time get no more than `SLOW_S`."""
        now = asyncio.get_running_loop().time()
        for limit, began in list(self._under_way.items())[: len(self._waiting)]:
            at = max(began + SLOW_S, now)
            when = limit.when()
            if when is not None and when > at and not limit.expired():
                limit.reschedule(at)
