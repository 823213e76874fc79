"""Waiting for a partition to reach an offset: a waiter is called when it has, or with the fault if it cannot."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from tailrace.model.faults import Fault

WhenReached = Callable[[Fault | None], None]


class OffsetWaiters:
    def __init__(self) -> None:
        # By rising offset; the lower offset of a duplicate batch waits for those queued before it.
        self._queue: deque[tuple[int, WhenReached]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, end: int, done: WhenReached) -> None:
        self._queue.append((end, done))

    async def until(self, end: int) -> None:
        """Return when the offset is reached; raises the fault if it cannot be. Cancelling removes the waiter."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (end, partial(_settle, done))
        self._queue.append(entry)
        try:
            await done
        except asyncio.CancelledError:
            if entry in self._queue:
                self._queue.remove(entry)
            raise

    def reached(self, offset: int) -> None:
        queue = self._queue
        while queue and queue[0][0] <= offset:
            queue.popleft()[1](None)

    def fail(self, fault: Fault) -> None:
        queue, self._queue = self._queue, deque()
        for _, done in queue:
            done(fault)


def _settle(done: "asyncio.Future[None]", fault: Fault | None) -> None:
    if done.done():
        return
    if fault is None:
        done.set_result(None)
    else:
        done.set_exception(fault)
