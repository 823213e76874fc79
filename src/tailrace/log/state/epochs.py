"""The leader epoch cache: at which offset each epoch's batches begin.

Epochs and offsets both rise from entry to entry. An epoch appears with its first batch; a leader that wrote nothing
leaves no entry. Followers ask with it where their log and the leader's part ways (KIP-101, KIP-320), so it is kept on
disk and cut with the log, and never made from compacted data.
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
        self.unsaved = True  # whether it has changed since it was last written down

    @property
    def last(self) -> int:
        """The epoch of the last batch; -1 before the first."""
        return self._epochs[-1] if self._epochs else -1

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def begin(self, epoch: int, start: int) -> None:
        """A batch of `epoch`, later than all before, stands at `start`."""
        assert epoch > self.last, f"epoch {epoch} after {self.last}"
        self.truncate_to(start)
        self._epochs.append(epoch)
        self._starts.append(start)
        self.unsaved = True

    def epoch_at(self, offset: int) -> int:
        found = bisect_right(self._starts, offset)
        return self._epochs[found - 1] if found else -1

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and where it ends; what OffsetForLeaderEpoch answers.

        (-1, -1) when the epoch is later than any known; the epoch itself and where the log starts when it is earlier.
        """
        if not self._epochs or epoch < 0 or epoch > self._epochs[-1]:
            return UNDEFINED
        after = bisect_right(self._epochs, epoch)
        end = max(self._starts[after], self._log_start) if after < len(self._starts) else log_end
        return (self._epochs[after - 1], end) if after else (epoch, end)

    def truncate_to(self, end: int) -> None:
        """Forget the epochs that begin at `end` or later."""
        kept = bisect_left(self._starts, end)
        self.unsaved = self.unsaved or kept < len(self._starts)
        del self._epochs[kept:], self._starts[kept:]

    def advance_start(self, start: int) -> None:
        """Forget the epochs that end at `start` or earlier; never the last, for an emptied log has an epoch too."""
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
