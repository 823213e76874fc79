"""Make bytes that were only read count as written again.

After a failed sync the system calls the pages clean that it could not write: a new process reads them from the cache,
a new sync of them does nothing and succeeds, and the bytes are gone with the power. So what recovery has scanned, and
will call durable, is written to its place once more: then the pages are dirty, and the sync that follows is honest.
"""

import asyncio
from typing import Final

from tailrace.model.limits import MiB
from tailrace.ports.disk import File

CHUNK_BYTES: Final = MiB


async def write_back(file: File, position: int, stop: int) -> None:
    """Write what stands from `position` to `stop` to where it stands; the caller syncs."""
    while position < stop:
        data = file.read(position, min(CHUNK_BYTES, stop - position))
        if not data:
            return
        file.write(data, position)
        position += len(data)
        await asyncio.sleep(0)
