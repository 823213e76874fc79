"""Fillers: the empty batches that take the place of removed ones, so that a compacted log has no holes.

A run of removed batches becomes one filler for each leader epoch, from the first removed offset to the last. The run is
kept open until a batch follows that stays: it may go on in the next slice of the log.
"""

from typing import Final

from tailrace.records.build import seal_batch
from tailrace.records.header import NO_PRODUCER, BatchHeader, read_header

SPAN_MAX: Final = 2**31 - 1  # the last offset delta has 32 bits with a sign


class Fillers:
    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []  # first and last offset, leader epoch

    def add(self, first: int, last: int, epoch: int) -> None:
        """Add removed offsets, which follow those of the run."""
        if self._runs:
            begin, _, run_epoch = self._runs[-1]
            if run_epoch == epoch and last - begin <= SPAN_MAX:
                self._runs[-1] = (begin, last, epoch)
                return
        while last - first > SPAN_MAX:
            self._runs.append((first, first + SPAN_MAX, epoch))
            first += SPAN_MAX + 1
        self._runs.append((first, last, epoch))

    def take(self) -> bytes:
        """The fillers of the run, which ends here."""
        runs, self._runs = self._runs, []
        return b"".join(empty_batch(first, last, epoch) for first, last, epoch in runs)


def empty_batch(first: int, last: int, epoch: int) -> bytearray:
    return seal_batch(
        b"",
        count=0,
        last_offset_delta=last - first,
        base_timestamp=-1,
        max_timestamp=-1,
        base_offset=first,
        leader_epoch=epoch,
    )


def is_filler(header: BatchHeader) -> bool:
    """Whether the batch only fills a place: it has neither records nor a producer."""
    return header.records == 0 and header.producer_id == NO_PRODUCER and not header.is_control


def rest_of_filler(header: BatchHeader, first: int) -> tuple[memoryview, BatchHeader]:
    """A filler for the offsets of this one from `first` on."""
    batch = memoryview(empty_batch(first, header.last_offset, header.leader_epoch))
    return batch, read_header(batch)
