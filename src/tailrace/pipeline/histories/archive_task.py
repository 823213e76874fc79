"""A task of an archive: write one range of offsets and report the result. Input and result are JSON, for `run_tasks`.

Records never leave the Python worker. Spark distributes the ranges over its executors, and retries failed tasks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tailrace.pipeline.access import Access, access_from
from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.histories.planned_ranges import RangeJson, range_from_json
from tailrace.pipeline.histories.writing import archive_range


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTask:
    """The parameters that all tasks of an archive share."""

    access: Access
    history: str
    quarantine: str  # the folder for damaged batches; empty: a damaged batch is a failure


ADVICE: Final = (
    "It was removed before it could be archived. If the history has earlier records of this partition, it cannot go on "
    "without a gap: archive to another folder. If it has none, run it again"
)


def run_archive_task(planned: RangeJson, given: Mapping[str, Any]) -> dict[str, Any]:
    """Archive one range. Return what was written, in the form that `archived_range_from` reads."""
    task = ArchiveTask(**{**given, "access": access_from(given["access"])})
    with task.access.cluster() as cluster:
        try:
            done = archive_range(
                cluster,
                range_from_json(planned),
                Path(task.history),
                quarantine=Path(task.quarantine) if task.quarantine else None,
            )
        except DataLost as lost:
            raise DataLost(f"{lost}. {ADVICE}") from None
    return done.to_dict()
