"""The leader epoch cache: at which offset each epoch's batches begin.

Epochs and offsets both ascend from entry to entry. An epoch gets its entry with its first batch; a leader that wrote
nothing leaves none. The offset where a follower's log diverges from the leader's is found with it (KIP-101, KIP-320).
So the cache is saved on disk and truncated with the log, and never rebuilt from compacted data.
"""

from bisect import bisect_left, bisect_right
from typing import Final, Self

from tailrace.log.directory.state_file import Unreadable, read_state, write_state

KIND: Final = "leader-epochs"
VERSION: Final = 1
UNDEFINED: Final = (-1, -1)


class EpochCache:
    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._log_start = 0
        self.unsaved = True  # whether it has changed since it was last saved

    @property
    def last(self) -> int:
        """The epoch of the last batch; -1 before the first."""
        return self._epochs[-1] if self._epochs else -1

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def begin(self, epoch: int, start: int) -> None:
        """The first batch of `epoch`, which is higher than all before, is at offset `start`."""
        assert epoch > self.last, f"epoch {epoch} after {self.last}"
        self.truncate_to(start)
        self._epochs.append(epoch)
        self._starts.append(start)
        self.unsaved = True

    def epoch_at(self, offset: int) -> int:
        found = bisect_right(self._starts, offset)
        return self._epochs[found - 1] if found else -1

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The answer to OffsetForLeaderEpoch: the largest known epoch up to `epoch`, and its end offset.

        (-1, -1) when `epoch` is higher than any known; `epoch` itself and the start of the first known epoch, or the
        log start, when it is lower than any known.
        """
        if not self._epochs or epoch < 0 or epoch > self._epochs[-1]:
            return UNDEFINED
        after = bisect_right(self._epochs, epoch)
        end = max(self._starts[after], self._log_start) if after < len(self._starts) else log_end
        return (self._epochs[after - 1], end) if after else (epoch, end)

    def truncate_to(self, end: int) -> None:
        """Remove the epochs that begin at `end` or later."""
        kept = bisect_left(self._starts, end)
        self.unsaved = self.unsaved or kept < len(self._starts)
        del self._epochs[kept:], self._starts[kept:]

    def advance_start(self, start: int) -> None:
        """Remove the epochs that end at `start` or earlier, but never the last: an emptied log still has an epoch."""
        gone = max(bisect_right(self._starts, start) - 1, 0)
        self.unsaved = self.unsaved or gone > 0
        del self._epochs[:gone], self._starts[:gone]
        self._log_start = start

    def dump(self) -> bytes:
        return write_state(KIND, VERSION, (f"{epoch} {start}" for epoch, start in self.entries()))

    @classmethod
    def load(cls, data: bytes) -> Self:
        cache = cls()
        try:
            for line in read_state(KIND, VERSION, data):
                epoch, start = map(int, line.split())
                cache._epochs.append(epoch)
                cache._starts.append(start)
        except ValueError as error:
            raise Unreadable(f"{KIND}: {error}") from error
        cache.unsaved = False
        return cache
