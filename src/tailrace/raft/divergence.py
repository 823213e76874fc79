"""Where two logs part ways, found by epochs alone.

Two logs that hold an entry of the same epoch at the same offset are equal up to there (Raft §5.3), because one leader
wrote each epoch, in order. So (end, last epoch) says all about a log. A leader that has something else there answers
with the largest epoch it knows up to the asker's, and where that ends (KIP-101, KIP-320); the asker cuts its own log
to what both have of it, and asks again.
"""

from typing import Protocol

from tailrace.raft.messages import EpochEnd


class Epochs(Protocol):
    """The log's epoch cache; see `log.epochs`."""

    @property
    def last(self) -> int:
        """The epoch of the last entry; -1 before the first."""
        ...

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` that wrote here, and the offset after its last entry; (-1, -1): unknown."""
        ...


class NoEpochs:
    """Of a log that nobody compares: a sole voter's."""

    last = -1

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        return -1, -1


def divergence(epochs: Epochs, log_end: int, end: int, last_epoch: int) -> EpochEnd | None:
    """What a leader answers to a log that ends at `end` with `last_epoch`; None: it is a prefix of the leader's."""
    known, known_end = _end_of(epochs, log_end, last_epoch)
    if end <= known_end and (known == last_epoch or known < 0):
        return None
    return EpochEnd(known, known_end)


def cut(epochs: Epochs, log_end: int, theirs: EpochEnd) -> int:
    """Where the asker cuts its log: what both have of the largest epoch that both may know."""
    if theirs.epoch < 0:
        return min(theirs.end, log_end)
    return min(theirs.end, _end_of(epochs, log_end, theirs.epoch)[1])


def _end_of(epochs: Epochs, log_end: int, epoch: int) -> tuple[int, int]:
    if epoch >= epochs.last or epoch < 0:
        return min(epoch, epochs.last), log_end
    return epochs.end_offset_for(epoch, log_end)
