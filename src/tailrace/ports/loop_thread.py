"""An event loop in a thread of its own, for programs without one."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

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
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
