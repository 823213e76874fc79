"""Which ranges to merge: adjacent ranges of one partition whose files together do not exceed the target file size.

A range is merged as a whole, with all its days, so that every range still accounts for all of its offsets.
"""

from collections.abc import Iterator, Sequence

from tailrace.pipeline.histories.manifest import ArchivedRange


def size_of(one: ArchivedRange) -> int:
    return sum(file.size for file in one.files)


def groups(ranges: Sequence[ArchivedRange], target_bytes: int) -> list[list[ArchivedRange]]:
    """Groups of consecutive ranges, in order; each group is merged into one range."""
    return [run for run in _runs(ranges, target_bytes) if _saves_files(run)]


def _runs(ranges: Sequence[ArchivedRange], target_bytes: int) -> Iterator[list[ArchivedRange]]:
    run: list[ArchivedRange] = []
    for one in sorted(ranges, key=lambda one: (one.of, one.start)):
        follows = bool(run) and run[-1].of == one.of and run[-1].end == one.start
        if not follows or sum(map(size_of, run)) + size_of(one) > target_bytes:
            yield run
            run = []
        run.append(one)
    yield run


def _saves_files(run: Sequence[ArchivedRange]) -> bool:
    files = [file for one in run for file in one.files]
    return len({file.date: None for file in files}) < len(files)
