"""Files that a crash or a cut left behind, and that nothing will ever ask for."""

from collections.abc import Iterator, Sequence

from tailrace.log.file_names import (
    ABORTED_SUFFIX,
    GAP_SUFFIX,
    INDEX_SUFFIX,
    PRODUCERS_SUFFIX,
    TIMES_SUFFIX,
    UNFINISHED_SUFFIX,
    named,
    offsets_named,
)


def strays(names: list[str], bases: Sequence[int], end: int) -> Iterator[str]:
    """Those of a folder's `names` that belong to no segment of `bases`, or to nothing below the log's `end`."""
    yield from (name for name in names if name.endswith(UNFINISHED_SUFFIX))
    yield from (named(one, PRODUCERS_SUFFIX) for one in offsets_named(names, PRODUCERS_SUFFIX) if one > end)
    yield from (named(one, GAP_SUFFIX) for one in offsets_named(names, GAP_SUFFIX) if not bases[0] <= one < end)
    for suffix in (INDEX_SUFFIX, TIMES_SUFFIX, ABORTED_SUFFIX):
        yield from (named(one, suffix) for one in offsets_named(names, suffix) if one not in bases)
