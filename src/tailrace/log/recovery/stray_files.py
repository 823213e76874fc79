"""Files in a partition's folder that a crash or a truncation left behind, and that are never read again."""

from collections.abc import Iterator, Sequence

from tailrace.log.file_names import (
    ABORTED_SUFFIX,
    GAP_SUFFIX,
    INDEX_SUFFIX,
    PRODUCERS_SUFFIX,
    TIMES_SUFFIX,
    UNFINISHED_SUFFIX,
    file_name,
    offsets_named,
)


def stray_files(names: list[str], bases: Sequence[int], end: int) -> Iterator[str]:
    """Of the files `names`: those of segments other than `bases`, those beyond the log `end`, and unfinished ones."""
    yield from (name for name in names if name.endswith(UNFINISHED_SUFFIX))
    snapshots, gaps = offsets_named(names, PRODUCERS_SUFFIX), offsets_named(names, GAP_SUFFIX)
    yield from (file_name(offset, PRODUCERS_SUFFIX) for offset in snapshots if offset > end)
    yield from (file_name(offset, GAP_SUFFIX) for offset in gaps if not bases[0] <= offset < end)
    for suffix in (INDEX_SUFFIX, TIMES_SUFFIX, ABORTED_SUFFIX):
        yield from (file_name(base, suffix) for base in offsets_named(names, suffix) if base not in bases)
