"""Which ranges an archive is at, written down before its tasks begin: one that died is taken up under the same names.

Nothing else depends on it. Without the note the same offsets might be archived in other ranges, and files that were
written for the old ones would be there without being part of the history until a vacuum.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tailrace.pipeline.histories.delta_log import own_folder
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.fetching import Range
from tailrace.pipeline.kafka.offsets import Offsets

name: Final = "under-way"

Told = tuple[str, int, int, int]  # topic, partition, start, end


def told(one: Range) -> Told:
    return (*one.partition, one.start, one.end)


def range_of(one: Told) -> Range:
    topic, partition, start, end = one
    return Range(partition=TopicPartition(topic, partition), start=start, end=end)


def note(history: Path, planned: Sequence[Range]) -> None:
    fresh = history / own_folder / f".{name}"
    fresh.write_text(json.dumps([told(one) for one in planned]))
    fresh.replace(history / own_folder / name)


def forget(history: Path) -> None:
    (history / own_folder / name).unlink(missing_ok=True)


def left_over(history: Path, start: Offsets, end: Offsets) -> list[Range]:
    """What was noted and comes next, in order; nothing of what has been archived since, or is not asked for now."""
    try:
        noted = [range_of(one) for one in json.loads((history / own_folder / name).read_text())]
    except (OSError, TypeError, ValueError):
        return []
    found, at = [], dict(start)
    for one in noted:
        if at.get(one.partition) == one.start and one.end <= end[one.partition]:
            found.append(one)
            at[one.partition] = one.end
    return found
