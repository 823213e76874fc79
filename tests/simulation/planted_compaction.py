"""Bugs to plant in compaction: each loses a last value, or brings a deleted or an aborted record back to life."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tailrace.broker.lifecycle import compacting
from tailrace.broker.replication import session_partition
from tailrace.log import follower_append
from tailrace.log.compaction import cleaner, compaction, segment_choice, swap
from tailrace.log.compaction.cleaner import Cleaner, Spans
from tailrace.log.compaction.key_map import KeyMap
from tailrace.log.compaction.segment_choice import Choice
from tailrace.log.log import Log
from tailrace.ports.disk import Disk
from tailrace.raft.tombstones import Serving
from tailrace.records.header import BatchHeader
from tests.simulation.planting import Mutant, replaced

EVERYTHING = 2**62


def tombstones_removed_at_once() -> AbstractContextManager[None]:
    """A pass removes all tombstones and markers that it meets, whatever the horizon is."""
    right = compaction._Cleaning.__init__

    def init(
        cleaning: Any, log: Any, session: Any, throttle: Any, last: Any, upto: int, horizon: int, bound: Any
    ) -> None:
        right(cleaning, log, session, throttle, last, upto, EVERYTHING, lambda: EVERYTHING)

    return replaced(compaction._Cleaning, "__init__", init)


def nobody_begins_anew() -> AbstractContextManager[None]:
    """A leader sends records to a replica below the horizon, which may lack tombstones that the leader has removed."""

    def serving(*arguments: object) -> Serving:
        return Serving.RECORDS

    return replaced(session_partition, "serving", serving)


def aborted_records_supersede() -> AbstractContextManager[None]:
    def is_aborted(header: BatchHeader, spans: Spans) -> bool:
        return False

    return replaced(cleaner, "_is_aborted", is_aborted)


def compacted_above_the_last_stable_offset() -> AbstractContextManager[None]:
    right = segment_choice.choose

    async def choose(log: Log, bound: int, now_ms: int) -> Choice | None:
        return await right(log, log.recorded_offset, now_ms)

    return replaced(compacting, "choose", choose)


def first_value_stays() -> AbstractContextManager[None]:
    def put(keys: KeyMap, keyed: list[bytes], offsets: Iterable[int]) -> list[int]:
        places, later = keys.__dict__.setdefault("places", {}), []
        for key, offset in zip(keyed, offsets, strict=True):
            if places.setdefault(key, offset) != offset:
                later.append(offset)
        return later

    return replaced(KeyMap, "put", put)


def fillers_repeat_offsets() -> AbstractContextManager[None]:
    """A follower takes only whole fillers, and never goes on in the middle of one."""
    return replaced(follower_append, "is_filler", lambda header: False)


def unfinished_swap_undone() -> AbstractContextManager[None]:
    """A start discards the new files although the old ones may be gone."""

    def replace_segments(disk: Disk, folder: str, bases: Sequence[int], suffixes: Sequence[str]) -> None:
        swap.discard_cleaned(disk, folder)

    return replaced(swap, "replace_segments", replace_segments)


def markers_removed_before_their_records() -> AbstractContextManager[None]:
    right: Callable[..., Any] = Cleaner._cleaned_control

    def cleaned_control(self: Cleaner, batch: memoryview, header: BatchHeader, done: Any) -> memoryview | None:
        self._left.clear()
        done.horizon = EVERYTHING
        found: memoryview | None = right(self, batch, header, done)
        return found

    return replaced(Cleaner, "_cleaned_control", cleaned_control)


MUTANTS: tuple[Mutant, ...] = (
    tombstones_removed_at_once,
    nobody_begins_anew,
    aborted_records_supersede,
    compacted_above_the_last_stable_offset,
    first_value_stays,
    fillers_repeat_offsets,
    unfinished_swap_undone,
    markers_removed_before_their_records,
)
