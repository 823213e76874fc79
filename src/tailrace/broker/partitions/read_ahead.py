"""The next piece for a consumer that catches up, read and checked while it takes in the last one.

Such a consumer asks for the next piece when it has the last: without this, to read and check it stands in its way, a
fifth of the time that a piece takes. It is read once the last answer is with the system: a client that cannot take in
what it was sent needs no more. What is ready is given to whoever asks for just that, once and soon, or forgotten.
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
    """What a Fetch asks of a partition."""

    partition: Partition
    offset: int
    max_bytes: int
    committed: bool

    def read(self) -> Read | None:
        return self.partition.read(self.offset, self.max_bytes, committed=self.committed)


class Ready(NamedTuple):
    read: Read
    bytes: int  # of the memory that it holds
    end: asyncio.TimerHandle


class ReadAhead:
    def __init__(self) -> None:
        self._ready: dict[Piece, Ready] = {}
        self.bytes = 0

    def read(self, piece: Piece) -> Read | None:
        """The piece, ready or read now; None: it takes the disk."""
        ready = self._forget(piece)
        if ready is None or piece.offset < piece.partition.log.start:  # records may have been deleted since
            return piece.read()
        return ready.read

    def prepare(self, pieces: Iterable[Piece]) -> None:
        """Get pieces ready, unless there are enough of them."""
        for piece in islice(pieces, READ_AHEAD_PER_ANSWER_MAX):
            is_worth_it = piece not in self._ready and piece.max_bytes >= READ_AHEAD_MIN_BYTES
            if is_worth_it and self.bytes + piece.max_bytes <= READ_AHEAD_MAX_BYTES:
                with suppress(Fault):  # whoever asks for it is told
                    self._keep(piece, piece.read())

    def _keep(self, piece: Piece, read: Read | None) -> None:
        if read is not None and 0 < len(read.data) <= piece.max_bytes:  # a larger batch goes out whole, and alone
            held = len(cast(Sized, memoryview(read.data).obj))
            end = asyncio.get_running_loop().call_later(READ_AHEAD_KEPT_S, self._forget, piece)
            self._ready[piece] = Ready(read, held, end)
            self.bytes += held

    def _forget(self, piece: Piece) -> Ready | None:
        ready = self._ready.pop(piece, None)
        if ready is not None:
            ready.end.cancel()
            self.bytes -= ready.bytes
        return ready
