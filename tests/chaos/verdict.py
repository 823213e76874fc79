"""Was every promise kept? Each function answers with complaints, in words that say which record, where.

- Acknowledged means there: at its offset, once.
- A writer's records of a partition are found in the order in which it wrote them, without a gap: none was given up.
- What a consumer has seen once stays where it was.
- Every replica holds the same bytes.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from tailrace.model.ids import show_id
from tailrace.model.topics import METADATA_TOPIC_ID
from tailrace.records.opened import batches
from tests.chaos.readers import Found
from tests.chaos.writers import SOMEWHERE

COMPLAINTS_MAX: Final = 20


class Promised(Protocol):
    """What a writer knows."""

    @property
    def number(self) -> int: ...

    @property
    def sent(self) -> Sequence[int]:
        """How many records, by partition."""

    @property
    def promised(self) -> Sequence[Sequence[int]]:
        """Offsets of those that were acknowledged, by partition and number."""


def first_few(complaints: Iterable[str]) -> list[str]:
    return [one for one, _ in zip(complaints, range(COMPLAINTS_MAX), strict=False)]


def about_promises(writers: Sequence[Promised], found: Sequence[Found]) -> Iterator[str]:
    for partition, rows in enumerate(found):
        places: list[list[int]] = [[] for _ in writers]  # by writer: the offsets of its records, in their order
        for place in range(len(rows)):
            offset, whose, number = rows.row(place)
            if number != len(places[whose]):
                what = "again" if number < len(places[whose]) else "too early"
                yield f"partition {partition}, offset {offset}: record {number} of writer {whose} comes {what}"
            else:
                places[whose].append(offset)
        for writer in writers:
            yield from _about(writer, partition, places[writer.number])


def _about(writer: Promised, partition: int, offsets: list[int]) -> Iterator[str]:
    promised = writer.promised[partition]
    if len(promised) != writer.sent[partition]:
        yield f"writer {writer.number} was promised {len(promised)} of {writer.sent[partition]} records in {partition}"
    if len(offsets) > writer.sent[partition]:
        yield f"partition {partition} holds {len(offsets)} records of writer {writer.number}, who wrote fewer"
    for number, offset in enumerate(promised):
        if number >= len(offsets):
            yield f"LOST: record {number} of writer {writer.number}, acknowledged at {offset} of partition {partition}"
        elif offset not in (offsets[number], SOMEWHERE):
            yield (
                f"MOVED: record {number} of writer {writer.number} in partition {partition}: "
                f"acknowledged at {offset}, found at {offsets[number]}"
            )


def about_what_was_seen(seen: Sequence[Found], found: Sequence[Found]) -> Iterator[str]:
    for partition, (before, after) in enumerate(zip(seen, found, strict=True)):
        for place in range(len(before)):
            if place >= len(after) or before.row(place) != after.row(place):
                there = after.row(place) if place < len(after) else None
                yield f"partition {partition}: seen (offset, writer, number) {before.row(place)}, later {there}"
                break


def about_replicas(data_dirs: Sequence[Path], ends: Sequence[int]) -> Iterator[str]:
    """After all brokers have stopped: the metadata, and the one topic whose partitions were read up to `ends`.

    Where one log is longer it is because its broker stopped last; up to `ends` all have everything.
    """
    metadata = f"{show_id(METADATA_TOPIC_ID)}-0"
    for name in sorted({path.parent.name: None for one in data_dirs for path in one.glob("*/*.log")}):
        logs = [b"".join(path.read_bytes() for path in sorted((one / name).glob("*.log"))) for one in data_dirs]
        shared = min(map(len, logs))
        if any(log[:shared] != logs[0][:shared] for log in logs):
            yield f"{name}: the bytes of its replicas differ, in the first {shared} that all have"
        elif name != metadata and _end(logs[0][:shared]) < ends[int(name.rpartition("-")[2])]:
            yield f"{name}: a replica ends at {_end(logs[0][:shared])}, before what was read"


def _end(log: bytes) -> int:
    end = 0
    for _, header in batches(log):
        end = header.last_offset + 1
    return end
