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
from tailrace.pipeline.kafka.fetching import Range
from tailrace.pipeline.kafka.offsets import Offsets

NAME: Final = "under-way"

Told = tuple[str, int, int, int]  # topic, partition, start, end


def told(one: Range) -> Told:
    return (*one.partition, one.start, one.end)


def range_of(one: Told) -> Range:
    topic, partition, start, end = one
    return Range(partition=TopicPartition(topic, partition), start=start, end=end)


def note(history: Path, planned: Sequence[Range]) -> None:
    """Save the planned ranges. They replace older notes of the same partitions; notes of other partitions stay."""
    _write(history, [*_others(history, planned), *planned])


def forget(history: Path, done: Sequence[Range]) -> None:
    _write(history, _others(history, done))


def left_over(history: Path, start: Offsets, end: Offsets) -> list[Range]:
    """The noted ranges to archive next, in order, without ranges archived since or not requested now."""
    found, at = [], dict(start)
    for one in _noted(history):
        if at.get(one.partition) == one.start and one.end <= end[one.partition]:
            found.append(one)
            at[one.partition] = one.end
    return found


def _others(history: Path, some: Sequence[Range]) -> list[Range]:
    partitions = dict.fromkeys(one.partition for one in some)
    return [one for one in _noted(history) if one.partition not in partitions]


def _noted(history: Path) -> list[Range]:
    try:
        return [range_of(one) for one in json.loads((history / OWN_FOLDER / NAME).read_text())]
    except (OSError, TypeError, ValueError):
        return []


def _write(history: Path, noted: Sequence[Range]) -> None:
    path = history / OWN_FOLDER / NAME
    if not noted:
        path.unlink(missing_ok=True)
        return
    fresh = path.with_name(f".{NAME}.{uuid4().hex}")
    fresh.write_text(json.dumps([told(one) for one in noted]))
    fresh.replace(path)
