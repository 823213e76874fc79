"""Rewrite bytes in place, so that the following fsync really covers them.

After a failed fsync the kernel marks the pages it could not write as clean. A new process reads them from the page
cache, an fsync of them succeeds without doing anything, and the bytes are lost at the next power cut. So everything
that recovery has scanned and will count as durable is written to its place again: the pages are then dirty, and the
fsync writes them.
"""

import asyncio
from typing import Final

from tailrace.model.limits import MiB
from tailrace.ports.disk import File

CHUNK_BYTES: Final = MiB


async def write_back(file: File, position: int, stop: int) -> None:
    """Rewrite the bytes from `position` to `stop` in place; the caller fsyncs."""
    while position < stop:
        data = file.read(position, min(CHUNK_BYTES, stop - position))
        if not data:
            return
        file.write(data, position)
        position += len(data)
        await asyncio.sleep(0)
