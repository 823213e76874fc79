"""Where a follower's log diverges from its leader's, found by epochs alone.

Two logs that have an entry of the same epoch at the same offset are equal up to that offset (Raft §5.3, the Log
Matching Property), because the entries of one epoch are written by one leader, in order. So a log is identified by its
end and its last epoch. When a fetch names a log that is not a prefix of the leader's, the leader answers with the
largest epoch that it has up to the follower's last epoch, and the end offset of that epoch (KIP-101, KIP-320). The
follower truncates its log to what both have of that epoch, and fetches again.
"""

from typing import Protocol

from tailrace.raft.messages import EpochEnd


class Epochs(Protocol):
    """The log's leader epoch cache; see `log.state.epochs`."""

    @property
    def last(self) -> int:
        """The epoch of the last entry; -1: the log is empty."""
        ...

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` with entries, and the offset after its last entry; (-1, -1): unknown."""
        ...


class NoEpochs:
    """For the log of a sole voter, which is never compared with another."""

    last = -1

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        return -1, -1


def divergence(epochs: Epochs, log_end: int, end: int, last_epoch: int) -> EpochEnd | None:
    """A leader's answer to a log that ends at `end` with `last_epoch`; None: that log is a prefix of the leader's."""
    known, known_end = _end_of(epochs, log_end, last_epoch)
    if end <= known_end and (known == last_epoch or known < 0):
        return None
    return EpochEnd(known, known_end)


def truncation_offset(epochs: Epochs, log_end: int, theirs: EpochEnd) -> int:
    """Where the follower truncates its log, given the epoch and end offset that the leader answered."""
    if theirs.epoch < 0:
        return min(theirs.end, log_end)
    return min(theirs.end, _end_of(epochs, log_end, theirs.epoch)[1])


def _end_of(epochs: Epochs, log_end: int, epoch: int) -> tuple[int, int]:
    if epoch >= epochs.last or epoch < 0:
        return min(epoch, epochs.last), log_end
    return epochs.end_offset_for(epoch, log_end)
