"""How the files of a partition's folder are called."""

from collections.abc import Iterable
from typing import Final

segment_suffix: Final = ".log"
index_suffix: Final = ".index"
times_suffix: Final = ".timeindex"
aborted_suffix: Final = ".txnindex"
producers_suffix: Final = ".producers"
gap_suffix: Final = ".gap"
voters_suffix: Final = ".voters"
unfinished_suffix: Final = ".new"
epochs_name: Final = "leader-epochs"
cut_name: Final = "truncated"
damaged_name: Final = "damaged"
refilling_name: Final = "refilling"


def named(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offsets_named(names: Iterable[str], suffix: str) -> list[int]:
    """The offsets of the files with this suffix, rising; names that are not ours are left alone."""
    stems = (name[: -len(suffix)] for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdecimal())
