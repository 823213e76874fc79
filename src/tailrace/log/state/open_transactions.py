"""Which transactions are open on a partition, and how far readers of committed records may read.

A transaction opens with its first batch and ends with its marker. The *last stable offset* is where the first one
begins that is open, or whose marker may not be committed: all below is decided. It never lies above the high watermark.

Both kinds are written down with the producers (`producers`), as lines of their own:

    open 1000 40          producer 1000 has a transaction open that began at offset 40
    ended 12 57           one that began at 12 has its marker at 57, which may not be committed
"""

from collections.abc import Iterator, Sequence
from typing import Final

OPEN_WORD: Final = "open"
ENDED_WORD: Final = "ended"


class Transactions:
    def __init__(self) -> None:
        self.open: dict[int, int] = {}  # by producer: where it began; these offsets rise
        self._ended: dict[int, int] = {}  # by the offset where it began: that of its marker

    @property
    def any(self) -> bool:
        return bool(self.open or self._ended)

    def begin(self, producer_id: int, offset: int) -> None:
        """A transactional batch stands at `offset`, the first of its transaction or a later one."""
        self.open.setdefault(producer_id, offset)

    def end(self, producer_id: int, marker: int) -> int | None:
        """A marker stands at `marker`: where the transaction began that it ends, if there was one."""
        first = self.open.pop(producer_id, None)
        if first is not None:
            self._ended[first] = marker
        return first

    def first_open(self, otherwise: int) -> int:
        return next(iter(self.open.values()), otherwise)

    def settle(self, high_watermark: int) -> None:
        """Markers below this are committed: what they ended is over. To be called often: each end takes memory."""
        if self._ended:
            for first in [first for first, marker in self._ended.items() if marker < high_watermark]:
                del self._ended[first]

    def last_stable(self, high_watermark: int) -> int:
        self.settle(high_watermark)
        return min(high_watermark, self.first_open(high_watermark), *self._ended)

    def forget(self) -> None:
        """The log was emptied: markers that went with it will not come again."""
        self.open.clear()
        self._ended.clear()

    def lines(self) -> Iterator[str]:
        yield from (f"{OPEN_WORD} {producer} {first}" for producer, first in self.open.items())
        yield from (f"{ENDED_WORD} {first} {marker}" for first, marker in self._ended.items())

    def take_line(self, words: Sequence[str]) -> bool:
        """Whether a line is one of ours; what it says is known then."""
        if words[0] not in (OPEN_WORD, ENDED_WORD):
            return False
        key, value = map(int, words[1:])
        (self.open if words[0] == OPEN_WORD else self._ended)[key] = value
        return True
