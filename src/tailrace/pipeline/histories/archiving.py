"""A task of an archive: write one range of offsets and report the result. Input and result are JSON, for `run_tasks`.

Records never leave the Python worker. Spark distributes the ranges over its executors, and retries failed tasks.
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
    """The parameters that all tasks of an archive share."""

    access: Access
    history: str
    quarantine: str  # the folder for damaged batches; empty: a damaged batch is a failure


ADVICE: Final = (
    "It was removed before it could be archived. If the history has earlier records of this partition, it cannot go on "
    "without a gap: archive to another folder. If it has none, run it again"
)


def archive_told(task: Told, given: Mapping[str, Any]) -> dict[str, Any]:
    """Archive one range. Return what was written, in the form that `range_from` reads."""
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
