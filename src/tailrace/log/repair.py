"""Repair a damaged log that has no other replica, while no broker runs: for `tailrace log repair`.

`examine` reads all segments, and finds each run of bytes that are not the expected batches. After bad bytes it looks
for the next batch that is sound: magic, length, checksum and an offset that fits. What lies between is lost, from the
offset that was expected up to that batch; at the end of a segment, up to the base offset of the next one.

`repair` copies each damaged file to a folder of its own, and puts a segment in its place that has all sound batches,
and an empty batch for each run of lost offsets, as compaction leaves them (ADR 0025). So the log has no holes, and
offsets stay as they were. Where no sound batch follows, the log ends.

A crash at any point leaves the old segments or the new ones. The mark `damaged` is stored first: while it is there, no
start takes what lies behind the damage for a torn tail. Then the log is marked as truncated to the first segment that
is changed: the next start scans everything from there, and rebuilds indexes, producers and epochs.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from tailrace.log.compaction.fillers import Fillers
from tailrace.log.file_names import (
    DAMAGED_NAME,
    INDEX_SUFFIX,
    SEGMENT_SUFFIX,
    TIMES_SUFFIX,
    UNFINISHED_SUFFIX,
    file_name,
    offsets_named,
)
from tailrace.log.recovery import damage_mark, truncation
from tailrace.log.segment_walk import checksum_problem, walk
from tailrace.log.state.gaps import read_gap
from tailrace.model.frozen import frozen
from tailrace.model.limits import BATCH_HEADER_BYTES, RECORD_BATCH_MAX_BYTES, MiB
from tailrace.ports.disk import Disk, File, make_lasting_dir
from tailrace.records.header import MAGIC_AT, PREFIX_BYTES, BatchHeader, read_header

CHUNK_BYTES: Final = MiB
MAGIC: Final = b"\x02"


@frozen
class Loss:
    """Bytes of a segment that are no sound batches, and the offsets that are lost with them."""

    base: int  # of the segment
    file: str
    position: int
    size: int
    first: int
    end: int  # the offset after the last lost one; `first` if none is known to be lost
    epoch: int  # for the empty batch in their place
    is_tail: bool  # no sound batch follows in the whole log, which ends here
    reason: str

    def __str__(self) -> str:
        lost = f"offsets {self.first} to {self.end - 1}" if self.end > self.first else "no offsets"
        if self.is_tail:
            lost = f"offsets from {self.first} on"
        return f"{self.file} at byte {self.position}: {self.size} bytes, {lost}: {self.reason}"


def examine(disk: Disk, folder: str) -> list[Loss]:
    """Everything in a log that is not sound, in log order."""
    bases = offsets_named(disk.names(folder), SEGMENT_SUFFIX)
    losses: list[Loss] = []
    expected, epoch = bases[0] if bases else 0, -1
    for base, next_base in zip(bases, [*bases[1:], None], strict=True):
        examined = _Examination(disk, folder, base, next_base, expected, epoch)
        examined.run()
        losses += examined.losses
        expected, epoch = examined.expected, examined.epoch
    return losses


class _Examination:
    """Of one segment, which should begin at offset `expected` and end where the next one begins."""

    def __init__(self, disk: Disk, folder: str, base: int, next_base: int | None, expected: int, epoch: int) -> None:
        self._disk = disk
        self._folder = folder
        self._base = base
        self._next_base = next_base
        self._path = f"{folder}/{file_name(base, SEGMENT_SUFFIX)}"
        self.expected = expected
        self.epoch = epoch
        self.losses: list[Loss] = []

    def run(self) -> None:
        file = self._disk.open(self._path)
        try:
            position, size = 0, file.size()
            while position < size:
                position, reason = self._step(file, position, size)
                if position < size:
                    position = self._lose(file, position, size, reason)
        finally:
            file.close()
        missing = self._next_base is not None and self.expected < self._next_base
        if missing and read_gap(self._disk, self._folder, self.expected) != self._next_base:
            assert self._next_base is not None
            self._add(size, 0, self._next_base, self.epoch, is_tail=False, reason="the segment ends too early")

    def _step(self, file: File, position: int, size: int) -> tuple[int, str]:
        """Step over sound batches: where they end, and what is wrong with what follows."""
        for batch in walk(file, position, size, check=True):
            problem = batch.problem or self._misplaced(batch.header)
            if problem is not None or batch.header is None:
                return position, problem or "unreadable"
            self.expected, self.epoch = batch.header.last_offset + 1, batch.header.leader_epoch
            position = batch.position + batch.header.size
        return position, ""

    def _misplaced(self, header: BatchHeader | None) -> str | None:
        if header is None:
            return None
        gap = read_gap(self._disk, self._folder, self.expected)
        if header.base_offset not in (self.expected, gap):
            return f"the batch has base offset {header.base_offset}, expected {self.expected}"
        if header.leader_epoch < self.epoch:
            return f"the batch has leader epoch {header.leader_epoch} after {self.epoch}"
        return None

    def _lose(self, file: File, position: int, size: int, reason: str) -> int:
        """Note what is lost, up to the next sound batch: where that begins."""
        found = _next_sound(file, position + 1, size, self.expected, self._next_base, self.epoch)
        after, end, next_epoch = found or (size, self._next_base or self.expected, 0)
        is_tail = found is None and self._next_base is None
        self._add(position, after - position, end, next_epoch, is_tail=is_tail, reason=reason)
        return after

    def _add(self, position: int, size: int, end: int, next_epoch: int, *, is_tail: bool, reason: str) -> None:
        self.losses.append(
            Loss(
                base=self._base,
                file=self._path,
                position=position,
                size=size,
                first=self.expected,
                end=end,
                epoch=self.epoch if self.epoch >= 0 else max(next_epoch, 0),
                is_tail=is_tail,
                reason=reason,
            )
        )
        self.expected = end


def _next_sound(
    file: File, position: int, size: int, expected: int, next_base: int | None, epoch: int
) -> tuple[int, int, int] | None:
    """Position, base offset and epoch of the first sound batch from `position` on."""
    while position + BATCH_HEADER_BYTES <= size:
        data = file.read(position, min(CHUNK_BYTES + BATCH_HEADER_BYTES, size - position))
        at = data.find(MAGIC, MAGIC_AT) - MAGIC_AT
        while 0 <= at <= len(data) - BATCH_HEADER_BYTES:
            header = read_header(memoryview(data), at)
            if _may_follow(header, size - position - at, expected, next_base, epoch):
                batch = file.read(position + at, header.size)
                if len(batch) == header.size and checksum_problem(memoryview(batch)) is None:
                    return position + at, header.base_offset, header.leader_epoch
            at = data.find(MAGIC, at + MAGIC_AT + 1) - MAGIC_AT
        position += max(len(data) - BATCH_HEADER_BYTES + 1, 1)
    return None


def _may_follow(header: BatchHeader, left: int, expected: int, next_base: int | None, epoch: int) -> bool:
    return (
        expected <= header.base_offset <= header.last_offset
        and (next_base is None or header.last_offset < next_base)
        and header.leader_epoch >= epoch
        and BATCH_HEADER_BYTES <= header.length + PREFIX_BYTES <= min(left, RECORD_BATCH_MAX_BYTES)
    )


async def repair(disk: Disk, folder: str, losses: list[Loss], aside: str) -> None:
    """Replace the damaged segments; their files are copied to the folder `aside` first."""
    await make_lasting_dir(disk, aside)
    bases = sorted({one.base for one in losses})
    for base in bases:
        name = file_name(base, SEGMENT_SUFFIX)
        await _write(disk, f"{aside}/{name}", _content(disk, f"{folder}/{name}"))
    await disk.sync_dir(aside)
    await damage_mark.mark(disk, folder, max(one.first for one in losses))
    await truncation.store_mark(disk, folder, bases[0])
    for base in bases:
        name = file_name(base, SEGMENT_SUFFIX)
        mine = [one for one in losses if one.base == base]
        await _write(disk, f"{folder}/{name}{UNFINISHED_SUFFIX}", _repaired(disk, f"{folder}/{name}", mine))
        for suffix in (INDEX_SUFFIX, TIMES_SUFFIX):
            if disk.exists(f"{folder}/{file_name(base, suffix)}"):
                disk.remove(f"{folder}/{file_name(base, suffix)}")
    for base in bases:
        path = f"{folder}/{file_name(base, SEGMENT_SUFFIX)}"
        disk.rename(path + UNFINISHED_SUFFIX, path)
    await disk.sync_dir(folder)
    disk.remove(f"{folder}/{DAMAGED_NAME}")
    await disk.sync_dir(folder)


async def _write(disk: Disk, path: str, pieces: Iterable[bytes]) -> None:
    file, size = disk.open(path), 0
    try:
        file.truncate(0)
        for piece in pieces:
            file.write(piece, size)
            size += len(piece)
        await file.sync()
    finally:
        file.close()


def _content(disk: Disk, path: str) -> Iterator[bytes]:
    file = disk.open(path)
    try:
        yield from _bytes(file, 0, file.size())
    finally:
        file.close()


def _repaired(disk: Disk, path: str, losses: list[Loss]) -> Iterator[bytes]:
    """The sound bytes of a segment, with empty batches in place of what is lost."""
    file, position = disk.open(path), 0
    try:
        for loss in losses:
            yield from _bytes(file, position, loss.position)
            if loss.end > loss.first:
                fillers = Fillers()
                fillers.add(loss.first, loss.end - 1, loss.epoch)
                yield fillers.take()
            position = loss.position + loss.size
        yield from _bytes(file, position, file.size())
    finally:
        file.close()


def _bytes(file: File, position: int, stop: int) -> Iterator[bytes]:
    while position < stop:
        data = file.read(position, min(CHUNK_BYTES, stop - position))
        if not data:
            raise OSError(f"{file.path} ends at byte {position}, while it is being copied")
        yield data
        position += len(data)
