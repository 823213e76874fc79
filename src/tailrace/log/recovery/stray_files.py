"""Files that a crash or a cut left behind, and that nothing will ever ask for."""

from collections.abc import Iterator, Sequence

from tailrace.log.file_names import (
    aborted_suffix,
    gap_suffix,
    index_suffix,
    named,
    offsets_named,
    producers_suffix,
    times_suffix,
    unfinished_suffix,
)


def strays(names: list[str], bases: Sequence[int], end: int) -> Iterator[str]:
    """Those of a folder's `names` that belong to no segment of `bases`, or to nothing below the log's `end`."""
    yield from (name for name in names if name.endswith(unfinished_suffix))
    yield from (named(one, producers_suffix) for one in offsets_named(names, producers_suffix) if one > end)
    yield from (named(one, gap_suffix) for one in offsets_named(names, gap_suffix) if not bases[0] <= one < end)
    for suffix in (index_suffix, times_suffix, aborted_suffix):
        yield from (named(one, suffix) for one in offsets_named(names, suffix) if one not in bases)
