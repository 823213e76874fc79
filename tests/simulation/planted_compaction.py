"""Bugs to plant in compaction: each loses a last value, or brings a deleted or an aborted record back to life."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tailrace.broker.replication import session_partition
from tailrace.log.compaction import cleaner, compaction, rewriting
from tailrace.log.compaction.cleaner import Cleaner, Spans
from tailrace.log.compaction.cleaner import _keyed as keyed_records
from tailrace.log.compaction.key_map import KeyMap
from tailrace.log.compaction.record_scan import Scan
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


def tombstones_supersede_nothing() -> AbstractContextManager[None]:
    right = keyed_records

    def keyed(header: BatchHeader, found: Scan) -> tuple[list[bytes], list[int]]:
        deleted = [header.base_offset + delta for delta in found.tombstones]
        pairs = [pair for pair in zip(*right(header, found), strict=True) if pair[1] not in deleted]
        return [key for key, _ in pairs], [offset for _, offset in pairs]

    return replaced(cleaner, "_keyed", keyed)


def first_value_stays() -> AbstractContextManager[None]:
    def put(keys: KeyMap, keyed: list[bytes], offsets: Iterable[int]) -> list[int]:
        places, later = keys.__dict__.setdefault("places", {}), []
        for key, offset in zip(keyed, offsets, strict=True):
            if places.setdefault(key, offset) != offset:
                later.append(offset)
        return later

    return replaced(KeyMap, "put", put)


def rewritten_batch_keeps_its_first_records() -> AbstractContextManager[None]:
    right = rewriting.with_records

    def with_records(header: BatchHeader, body: bytes, starts: Sequence[int], kept: Sequence[int]) -> bytearray:
        return right(header, body, starts, range(len(kept)))

    return replaced(cleaner, "with_records", with_records)


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
    first_value_stays,
    tombstones_supersede_nothing,
    rewritten_batch_keeps_its_first_records,
    markers_removed_before_their_records,
)
