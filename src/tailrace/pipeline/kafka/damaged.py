"""Find damaged batches and the offsets they cover, and pass them to a callback that decides what to do with them.

A batch whose checksum does not match is fetched once more, over a new connection, because it may have been damaged in
transit. Nothing in its header is trusted, not even its last offset: a binary search with fetches to the broker finds
the offset where the next batch begins. A batch whose checksum matches but that cannot be decoded was written that way,
so its header is trusted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tailrace.client.visible_batches import ExpectedOffsets, VisibleBatches, check_offsets, select_visible
from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch, UnsupportedFormat
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.pipeline.arrow.columns import Columns, decode, decode_runs
from tailrace.pipeline.failure import RecordsDamaged
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.records.header import PREFIX, PREFIX_BYTES
from tailrace.records.opened import batches

UNREADABLE: Final = (CorruptBatch, UnsupportedFormat, InvalidBatch, BatchTooLarge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """A batch of which no record can be read."""

    partition: TopicPartition
    first: int  # `first` and `last` are offsets, both inclusive
    last: int
    why: str
    data: bytes  # the batch's bytes as received

    def __str__(self) -> str:
        return f"offsets {self.first}…{self.last} of {self.partition} cannot be read: {self.why}"


OnDamaged = Callable[[Damaged], None]


def raise_damaged(found: Damaged) -> None:
    raise RecordsDamaged(
        f"{found}. A healthy replica may have them; to go on without them, set them aside: "
        'option("corruptBatches", "quarantine")'
    )


class Flaw(NamedTuple):
    """The first flawed batch in a fetch response."""

    place: int  # byte position of the flawed batch; all bytes before it are intact batches
    base: int  # the base offset in the batch's header
    why: str
    data: bytes


def find_flaw(data: memoryview, expected: ExpectedOffsets) -> Flaw:
    """The first damaged batch in a fetch response; if there is none, the batch that the response cuts off."""
    place, why = 0, "the batch does not end where it says"
    try:
        at = expected.at
        for batch, header in batches(data):
            check_offsets(header, at, expected, is_first=not place)
            at = select_visible(batch).end
            place += len(batch)
    except UNREADABLE as corrupt:
        why = str(corrupt)
    size = PREFIX_BYTES + PREFIX.unpack_from(data, place)[1]
    end = place + size if BATCH_HEADER_BYTES <= size <= len(data) - place else len(data)
    return Flaw(place, PREFIX.unpack_from(data, place)[0], why, bytes(data[place:end]))


def end_of_flaw(flaw: Flaw, at: int, limit: int, ask: Callable[[int], Any]) -> int:
    """The offset after a flawed batch where reading can continue, at most `limit`; `ask` fetches at an offset."""
    low, high = at, limit  # the flawed batch covers offset `low`, but not `high`
    while high - low > 1:
        middle = (low + high) // 2
        records = ask(middle).records
        is_flawed = bool(records) and PREFIX.unpack_from(records, 0)[0] == flaw.base
        low, high = (middle, high) if is_flawed else (low, middle)
    return high


def decode_response(
    visible: VisibleBatches, partition: TopicPartition, on_damaged: OnDamaged, *, headers: bool = False
) -> Iterator[Columns]:
    """The records of a fetch response. Batches with a matching checksum that cannot be decoded go to `on_damaged`."""
    done = 0
    try:
        for columns in decode_runs(visible, headers=headers):
            yield columns
            done += len(columns.batches)
    except UNREADABLE:
        rest = VisibleBatches(data=visible.data, batches=visible.batches[done:])
        yield from _one_by_one(rest, partition, on_damaged, headers=headers)


def _one_by_one(
    visible: VisibleBatches, partition: TopicPartition, on_damaged: OnDamaged, *, headers: bool
) -> Iterator[Columns]:
    for place, header in visible.batches:
        data = visible.data[place : place + header.size]
        try:
            columns = decode(VisibleBatches(data=data, batches=[(0, header)]), headers=headers)
        except UNREADABLE as corrupt:
            first, last = header.base_offset, header.last_offset
            on_damaged(Damaged(partition=partition, first=first, last=last, why=str(corrupt), data=bytes(data)))
            continue
        if columns is not None:
            yield columns
