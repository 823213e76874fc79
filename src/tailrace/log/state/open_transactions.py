"""The open transactions of a partition, and its last stable offset.

A transaction opens with its first batch and ends with its marker. The *last stable offset* is the first offset of the
earliest transaction that is open, or whose marker may not be committed yet: all transactions below it are decided. It
is never above the high watermark. Consumers with `read_committed` read up to it.

Both kinds of transactions are saved in the producer snapshot (`producers`), as lines of their own:

    open 1000 40          producer 1000 has an open transaction that began at offset 40
    ended 12 57           a transaction that began at offset 12 has its marker at 57, which may not be committed yet
"""

from collections.abc import Iterator, Sequence
from typing import Final

OPEN_WORD: Final = "open"
ENDED_WORD: Final = "ended"


class Transactions:
    def __init__(self) -> None:
        self.open: dict[int, int] = {}  # first offset by producer id; the offsets ascend
        self._ended: dict[int, int] = {}  # offset of the marker by first offset of the transaction

    @property
    def any(self) -> bool:
        return bool(self.open or self._ended)

    def begin(self, producer_id: int, offset: int) -> None:
        """The log has a transactional batch at `offset`: the first of its transaction, or a later one."""
        self.open.setdefault(producer_id, offset)

    def end(self, producer_id: int, marker: int) -> int | None:
        """The log has a marker at offset `marker`; returns the first offset of the transaction that it ends, if any."""
        first = self.open.pop(producer_id, None)
        if first is not None:
            self._ended[first] = marker
        return first

    def first_open(self, otherwise: int) -> int:
        return next(iter(self.open.values()), otherwise)

    def settle(self, high_watermark: int) -> None:
        """Drop the ended transactions whose markers are committed. To be called often, since each takes memory."""
        if self._ended:
            for first in [first for first, marker in self._ended.items() if marker < high_watermark]:
                del self._ended[first]

    def last_stable(self, high_watermark: int) -> int:
        self.settle(high_watermark)
        return min(high_watermark, self.first_open(high_watermark), *self._ended)

    def clear(self) -> None:
        """The log was emptied: the markers that are gone with it will not come again."""
        self.open.clear()
        self._ended.clear()

    def lines(self) -> Iterator[str]:
        yield from (f"{OPEN_WORD} {producer} {first}" for producer, first in self.open.items())
        yield from (f"{ENDED_WORD} {first} {marker}" for first, marker in self._ended.items())

    def take_line(self, words: Sequence[str]) -> bool:
        """Take in a line of a snapshot; returns whether it is about a transaction."""
        if words[0] not in (OPEN_WORD, ENDED_WORD):
            return False
        key, value = map(int, words[1:])
        (self.open if words[0] == OPEN_WORD else self._ended)[key] = value
        return True
