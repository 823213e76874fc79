"""Which batches of a fetch response a reader may see, and why the others are left out.

Control batches are for brokers and clients only. Batches of aborted transactions are left out: the broker reports where
each aborted transaction of a producer starts, and the producer's next abort marker ends the transaction. With
`read_uncommitted`, everything that producers wrote is visible.

Offsets that are left out are recorded with the reason: an offset that is in no file of a history is then either
explained or missing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from tailrace.model.faults import CorruptBatch
from tailrace.ports.disk import Buffer
from tailrace.records.control import CONTROL_KEY
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, BatchHeader
from tailrace.records.opened import batches, open_batch
from tailrace.wire.messages.fetch import AbortedTransaction

SkipReason = Literal["control", "aborted"]
ABORT_MARKER: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedOffsets:
    """A range of offsets without records that a reader may see."""

    first: int
    last: int
    reason: SkipReason


@dataclass(slots=True, kw_only=True)
class VisibleBatches:
    data: memoryview
    batches: list[tuple[int, BatchHeader]] = field(default_factory=list)  # each with its position in `data`
    skipped: list[SkippedOffsets] = field(default_factory=list)
    end: int = -1  # the next offset to fetch; -1 if there was no complete batch
    limit: int = -1  # where readers have to stop, if the broker has said so


class ExpectedOffsets(NamedTuple):
    """The requested range, for validating the offsets of batches, which a batch's checksum does not cover."""

    at: int
    end: int  # of the requested range, exclusive
    high_watermark: int  # from the fetch response


def select_visible(
    data: Buffer, aborted: Iterable[AbortedTransaction] | None = None, expected: ExpectedOffsets | None = None
) -> VisibleBatches:
    """The batches that a reader may see; `aborted` is from the fetch response, or None for `read_uncommitted`."""
    visible = VisibleBatches(data=memoryview(data))
    place = 0
    waiting = sorted(aborted or (), key=lambda one: one.first_offset, reverse=True)
    aborting: dict[int, None] = {}  # producers with an aborted transaction open at this position
    for batch, header in batches(data):
        _check(batch, header)
        if expected is not None:
            check_offsets(header, max(visible.end, expected.at), expected, is_first=not place)
        visible.end = header.last_offset + 1
        while waiting and waiting[-1].first_offset <= header.last_offset:
            aborting[waiting.pop().producer_id] = None
        reason = _reason(batch, header, aborting)
        if reason is None:
            visible.batches.append((place, header))
        else:
            visible.skipped.append(SkippedOffsets(first=header.base_offset, last=header.last_offset, reason=reason))
        place += header.size
    return visible


def _reason(batch: memoryview, header: BatchHeader, aborting: dict[int, None]) -> SkipReason | None:
    if header.is_control:
        if _is_abort(batch):
            aborting.pop(header.producer_id, None)
        return "control"
    return "aborted" if header.is_transactional and header.producer_id in aborting else None


def _is_abort(batch: memoryview) -> bool:
    records = open_batch(batch)
    key = records[0].key if records else None
    return key is not None and len(key) >= CONTROL_KEY.size and CONTROL_KEY.unpack_from(key)[1] == ABORT_MARKER


def _check(batch: memoryview, header: BatchHeader) -> None:
    if crc32c(batch[CHECKED_FROM:]) != header.crc:
        raise CorruptBatch(f"the batch at offset {header.base_offset} does not fit its checksum")


def check_offsets(header: BatchHeader, at: int, expected: ExpectedOffsets, *, is_first: bool) -> None:
    """Raise `CorruptBatch` if a batch's offsets are not plausible.

    Offsets must increase from batch to batch. The first batch must not end before the requested offset. No batch may
    skip the rest of the requested range and reach the high watermark.
    """
    is_behind = header.last_offset < at if is_first else header.base_offset < at
    leaps = at < expected.end <= header.base_offset and header.last_offset >= expected.high_watermark
    if is_behind or leaps:
        raise CorruptBatch(f"a batch has base offset {header.base_offset} where {at} or later was expected")


def merge_adjacent(skipped: Sequence[SkippedOffsets]) -> list[SkippedOffsets]:
    """Merge adjacent ranges that have the same reason."""
    whole: list[SkippedOffsets] = []
    for one in skipped:
        if whole and whole[-1].reason == one.reason and whole[-1].last + 1 == one.first:
            whole[-1] = SkippedOffsets(first=whole[-1].first, last=one.last, reason=one.reason)
        else:
            whole.append(one)
    return whole
