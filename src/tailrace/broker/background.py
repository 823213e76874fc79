"""Background tasks of a broker. If one fails (a bug, or a log of a later release), the broker logs it and stops."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tailrace.broker.later_release import LaterRelease

logger: Final = logging.getLogger(__name__)

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class BackgroundTasks:
    def __init__(self) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # holds the first failure
        self.stopping = False  # the broker is shutting down: start no new work
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def cancelled(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks = list(self._tasks)
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, LaterRelease):
                logger.critical("this broker stops: %s", error)
            else:
                logger.critical("this broker stops: a background task failed", exc_info=error)
            if not self.failed.done():
                self.failed.set_exception(error)
                self.failed.exception()  # marks it as retrieved: it is logged above, asyncio must not log it again
