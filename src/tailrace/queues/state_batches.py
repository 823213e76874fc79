"""Lists of state batches: ascending, without overlap, and neighbours that say the same are one batch.

Where two batches say something about the same offset, the higher delivery count wins, then the higher state, then the
new one. So a write that arrives twice, or after a later one, undoes nothing.

A partition may have tens of thousands of batches, and most writes are small. `merge` looks only at what lies between
the first and the last offset written; what no new batch touches there is copied by slices.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from tailrace.queues.state import StateBatch

FIRST: Final = attrgetter("first")
LAST: Final = attrgetter("last")


def cut_below(batches: list[StateBatch], start: int) -> None:
    """Forget everything below `start`."""
    del batches[: bisect_left(batches, start, key=LAST)]
    if batches and batches[0].first < start:
        batches[0] = _part(batches[0], start, batches[0].last)


def merge(batches: list[StateBatch], new: Sequence[StateBatch]) -> None:
    """Add what is new, which must ascend without overlap, to a list of batches."""
    if not new:
        return
    # Neighbours of what is new are looked at, too: they may become one batch with it.
    begin = bisect_left(batches, new[0].first - 1, key=LAST)
    end = bisect_right(batches, new[-1].last + 1, key=FIRST)
    batches[begin:end] = _merged(batches[begin:end], new)


def _merged(old: Sequence[StateBatch], new: Sequence[StateBatch]) -> list[StateBatch]:
    found: list[StateBatch] = []
    at = 0  # in `old`: the next batch
    rest: StateBatch | None = None  # of the old batch before that, what lies behind all new ones so far
    for batch in new:
        if rest is not None and rest.last < batch.first:
            _add(found, rest)
            rest = None
        if rest is None:
            overlap = bisect_left(old, batch.first, at, key=LAST)
            _add_all(found, old[at:overlap])
            at = overlap
        position = batch.first
        while position <= batch.last:
            if rest is None and at < len(old) and old[at].first <= batch.last:
                rest, at = old[at], at + 1
            if rest is None or rest.first > batch.last:
                _add(found, _part(batch, position, batch.last))
                break
            if rest.first > position:
                _add(found, _part(batch, position, rest.first - 1))
                position = rest.first
            elif rest.first < position:
                _add(found, _part(rest, rest.first, position - 1))
            last = min(rest.last, batch.last)
            _add(found, _part(_winner(rest, batch), position, last))
            rest = _part(rest, last + 1, rest.last) if rest.last > last else None
            position = last + 1
    if rest is not None:
        _add(found, rest)
    _add_all(found, old[at:])
    return found


def _winner(old: StateBatch, new: StateBatch) -> StateBatch:
    return old if (old.count, old.state) > (new.count, new.state) else new


def _part(batch: StateBatch, first: int, last: int) -> StateBatch:
    if batch.first == first and batch.last == last:
        return batch
    return StateBatch(first, last, batch.state, batch.count, batch.not_before)


def _add(found: list[StateBatch], batch: StateBatch) -> None:
    if found:
        before = found[-1]
        if before.last + 1 == batch.first and before[2:] == batch[2:]:
            found[-1] = _part(before, before.first, batch.last)
            return
    found.append(batch)


def _add_all(found: list[StateBatch], batches: Sequence[StateBatch]) -> None:
    """Only the first can be a neighbour of what was found so far."""
    if batches:
        _add(found, batches[0])
        found += batches[1:]
