"""A task of an archive: it writes one range of offsets, and says what it has done. Both ways in JSON, for `run_tasks`.

Records never leave the Python worker. Spark does what it is good at: it spreads the ranges over its executors, and
repeats what failed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tailrace.pipeline.access import Access, access_from
from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.histories.under_way import Told, range_of
from tailrace.pipeline.histories.writing import archive_range


@dataclass(frozen=True, slots=True, kw_only=True)
class Archiving:
    """What all tasks of an archive have in common."""

    access: Access
    history: str
    quarantine: str  # the folder for damaged batches; empty: they are a failure


ADVICE: Final = (
    "It was removed before it could be archived. If the history has earlier records of this partition, it cannot go on "
    "without a gap: archive to another folder. If it has none, run it again"
)


def archive_told(task: Told, given: Mapping[str, Any]) -> dict[str, Any]:
    """Archive one range; what was written, as `range_from` takes it."""
    common = Archiving(**{**given, "access": access_from(given["access"])})
    with common.access.cluster() as cluster:
        try:
            done = archive_range(
                cluster,
                range_of(task),
                Path(common.history),
                quarantine=Path(common.quarantine) if common.quarantine else None,
            )
        except DataLost as lost:
            raise DataLost(f"{lost}. {ADVICE}") from None
    return done.to_dict()
