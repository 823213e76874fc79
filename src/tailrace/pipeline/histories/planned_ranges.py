"""The ranges an archive has planned, saved before its tasks start: after a crash, the same file names are used again.

Without this note, the same offsets would still be archived, but perhaps in other ranges. The files written for the old
ranges would then be in no commit, and an audit would report them until a vacuum deletes them.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from tailrace.pipeline.histories.delta_log import OWN_FOLDER
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.kafka.offsets import Offsets

FILE_NAME: Final = "under-way"

RangeJson = tuple[str, int, int, int]  # topic, partition, start, end


def range_to_json(one: OffsetRange) -> RangeJson:
    return (*one.partition, one.start, one.end)


def range_from_json(one: RangeJson) -> OffsetRange:
    topic, partition, start, end = one
    return OffsetRange(partition=TopicPartition(topic, partition), start=start, end=end)


def save_planned(history: Path, planned: Sequence[OffsetRange]) -> None:
    """Save the planned ranges. They replace older notes of the same partitions; notes of other partitions stay."""
    _write(history, [*_of_other_partitions(history, planned), *planned])


def remove_planned(history: Path, done: Sequence[OffsetRange]) -> None:
    _write(history, _of_other_partitions(history, done))


def planned_earlier(history: Path, start: Offsets, end: Offsets) -> list[OffsetRange]:
    """The noted ranges to archive next, in order, without ranges archived since or not requested now."""
    found, at = [], dict(start)
    for one in _load(history):
        if at.get(one.partition) == one.start and one.end <= end[one.partition]:
            found.append(one)
            at[one.partition] = one.end
    return found


def _of_other_partitions(history: Path, some: Sequence[OffsetRange]) -> list[OffsetRange]:
    partitions = dict.fromkeys(one.partition for one in some)
    return [one for one in _load(history) if one.partition not in partitions]


def _load(history: Path) -> list[OffsetRange]:
    try:
        return [range_from_json(one) for one in json.loads((history / OWN_FOLDER / FILE_NAME).read_text())]
    except (OSError, TypeError, ValueError):
        return []


def _write(history: Path, noted: Sequence[OffsetRange]) -> None:
    path = history / OWN_FOLDER / FILE_NAME
    if not noted:
        path.unlink(missing_ok=True)
        return
    fresh = path.with_name(f".{FILE_NAME}.{uuid4().hex}")
    fresh.write_text(json.dumps([range_to_json(one) for one in noted]))
    fresh.replace(path)
