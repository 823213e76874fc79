"""Read-ahead for consumers that catch up: the next piece is read and checked while the client receives the last one.

Such a consumer requests the next piece when it has the last; without read-ahead, reading and checking it would be a
fifth of the time per piece. A piece is read only after the previous answer was handed to the kernel, so a client that
does not read causes no more work. A prepared piece serves one request for exactly that piece, or is dropped after
`READ_AHEAD_KEPT_S`.
"""

import asyncio
from collections.abc import Iterable, Sized
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, cast

from tailrace.broker.partitions.partition import Partition
from tailrace.log.reader import Read
from tailrace.model.faults import Fault
from tailrace.model.limits import (
    READ_AHEAD_KEPT_S,
    READ_AHEAD_MAX_BYTES,
    READ_AHEAD_MIN_BYTES,
    READ_AHEAD_PER_ANSWER_MAX,
)


class Piece(NamedTuple):
    """What a Fetch requests of one partition."""

    partition: Partition
    offset: int
    max_bytes: int
    committed: bool

    def read(self) -> Read | None:
        return self.partition.read(self.offset, self.max_bytes, committed=self.committed, skip_empty=True)

    async def read_cold(self) -> Read:
        return await self.partition.read_cold(self.offset, self.max_bytes, committed=self.committed, skip_empty=True)


class Ready(NamedTuple):
    read: Read
    bytes: int  # memory held by `read`
    expiry: asyncio.TimerHandle


class ReadAhead:
    def __init__(self) -> None:
        self._ready: dict[Piece, Ready] = {}
        self.bytes = 0

    def read(self, piece: Piece) -> Read | None:
        """The piece, prepared or read now; None: it is not in the page cache."""
        ready = self._forget(piece)
        if ready is None or piece.offset < piece.partition.log.start:  # records may have been deleted since
            return piece.read()
        return ready.read

    def prepare(self, pieces: Iterable[Piece]) -> None:
        """Read pieces ahead, within the memory limit."""
        for piece in islice(pieces, READ_AHEAD_PER_ANSWER_MAX):
            is_worth_it = piece not in self._ready and piece.max_bytes >= READ_AHEAD_MIN_BYTES
            if is_worth_it and self.bytes + piece.max_bytes <= READ_AHEAD_MAX_BYTES:
                with suppress(Fault):  # the request for it will get the fault
                    self._keep(piece, piece.read())

    def _keep(self, piece: Piece, read: Read | None) -> None:
        if read is not None and 0 < len(read.data) <= piece.max_bytes:  # not for a single batch larger than max_bytes
            held = len(cast(Sized, memoryview(read.data).obj))
            expiry = asyncio.get_running_loop().call_later(READ_AHEAD_KEPT_S, self._forget, piece)
            self._ready[piece] = Ready(read, held, expiry)
            self.bytes += held

    def _forget(self, piece: Piece) -> Ready | None:
        ready = self._ready.pop(piece, None)
        if ready is not None:
            ready.expiry.cancel()
            self.bytes -= ready.bytes
        return ready
