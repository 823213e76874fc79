"""Offsets as runs: arrays of single offsets are turned into the few spans that they usually are."""

from collections.abc import Sequence

import numpy as np

Spans = list[tuple[int, int]]  # both ends included, in order
Runs = list[tuple[int, int]]  # ends exclusive


def add_run(those: Runs, first: int, end: int) -> None:
    """Add a run that follows those that are there; it is merged with the last one where they touch."""
    if those and those[-1][1] == first:
        those[-1] = (those[-1][0], end)
    else:
        those.append((first, end))


def runs(offsets: np.ndarray) -> Runs:
    """Split increasing offsets into runs without gaps."""
    if not len(offsets):
        return []
    breaks = np.flatnonzero(np.diff(offsets) != 1)
    firsts = offsets[np.concatenate([[0], breaks + 1])]
    lasts = offsets[np.concatenate([breaks, [len(offsets) - 1]])]
    return list(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True))


def spans(offsets: np.ndarray) -> Spans:
    """Increasing offsets as spans."""
    return [(first, end - 1) for first, end in runs(offsets)]


def outside(offsets: np.ndarray, covered: Sequence[tuple[int, int]]) -> np.ndarray:
    """Those of these offsets that lie in none of the runs, which may overlap."""
    if not covered:
        return offsets
    firsts, ends = (np.array(edges, np.int64) for edges in zip(*sorted(covered), strict=True))
    reached = np.maximum.accumulate(ends)
    place = np.searchsorted(firsts, offsets, side="right") - 1
    return offsets[(place < 0) | (offsets >= reached[np.maximum(place, 0)])]


def count(those: Sequence[tuple[int, int]]) -> int:
    """How many offsets are in spans that do not overlap."""
    return sum(last - first + 1 for first, last in those)
