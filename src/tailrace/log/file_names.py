"""Names of the files in a partition's folder: twenty digits of an offset and a suffix, or a fixed name."""

from collections.abc import Iterable
from typing import Final

SEGMENT_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIMES_SUFFIX: Final = ".timeindex"
ABORTED_SUFFIX: Final = ".txnindex"
PRODUCERS_SUFFIX: Final = ".producers"
GAP_SUFFIX: Final = ".gap"
VOTERS_SUFFIX: Final = ".voters"
UNFINISHED_SUFFIX: Final = ".new"
CLEANED_SUFFIX: Final = ".cleaned"  # behind the suffix of the file that it will replace
EPOCHS_NAME: Final = "leader-epochs"
TRUNCATED_NAME: Final = "truncated"
DAMAGED_NAME: Final = "damaged"
REFILLING_NAME: Final = "refilling"
ASIDE_NAME: Final = "aside"  # a folder
HORIZON_NAME: Final = "horizon"
SWAP_NAME: Final = "compacted"
CLEANER_NAME: Final = "cleaner"


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offsets_named(names: Iterable[str], suffix: str) -> list[int]:
    """The offsets of the files with this suffix, ascending; files that are not named by an offset are skipped."""
    stems = (name[: -len(suffix)] for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdecimal())
