"""Waiting in a loop that may have stood still: its timers go before its sockets.

After a pause, of the process or of the machine, a timer finds that nothing was heard for long, while what came in lies
unread in the sockets. Whoever judges silence lets that be read first.
"""

import asyncio
from collections.abc import Callable


def after_reading(look: Callable[[], None]) -> None:
    """Called by a timer: call `look` after the sockets were read."""
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, look)  # what is called soon goes before the sockets, what that calls soon goes after


async def sleep_then_read(seconds: float) -> None:
    """Sleep, and let what came meanwhile be read."""
    await asyncio.sleep(seconds)
    await asyncio.sleep(0)
