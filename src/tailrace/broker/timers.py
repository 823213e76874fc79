"""Timers that check for silence must let the event loop read its sockets first.

An event loop runs due timers before it reads sockets. After a pause of the process or of the machine, a timer would
find that a peer has been silent for long, although its messages wait unread in the sockets. Code that concludes
something from silence (elections, fencing, session timeouts) therefore uses these functions.
"""

import asyncio
from collections.abc import Callable


def after_reading(look: Callable[[], None]) -> None:
    """Called by a timer: call `look` after the sockets were read."""
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, look)  # the first call_soon may still run before the sockets, the second runs after


async def sleep_then_read(seconds: float) -> None:
    """Sleep, then let the event loop read its sockets once."""
    await asyncio.sleep(seconds)
    await asyncio.sleep(0)
