"""An event loop in a thread of its own, for programs without one."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    def __init__(self, name: str) -> None:
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()
        self._is_ready.wait()

    def _serve(self) -> None:
        with asyncio.Runner() as runner:  # which cancels what is left at the end
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        self._loop, self._closed = asyncio.get_running_loop(), asyncio.Event()
        self._is_ready.set()
        await self._closed.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, which runs on the loop. It is cancelled if the caller is interrupted."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def close(self) -> None:
        """Cancel what still runs on the loop, and end the thread."""
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()
