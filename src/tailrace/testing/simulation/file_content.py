"""The bytes of one file, twice: as every reader sees them, and as they would be after a power cut.

A change (a write or a truncation) reaches `visible` at once and waits, numbered, in `pending`. A sync applies to
`durable`, in order, the changes that were made before it started. In a power cut each pending change survives wholly,
partly or not at all:

- a write may be torn at any byte, or keep any subset of its 512-byte sectors;
- a write that would have extended the file may leave the new size with zeros or garbage in place of its bytes;
- bytes that were synced and not overwritten since are never touched.

After a failed sync the kernel marks the pages as clean, as Linux does: some of the changes reached the disk, and the
others are never written, whatever syncs follow.
"""

import random
from collections import deque
from typing import Final, NamedTuple

SECTOR_BYTES: Final = 512


class Change(NamedTuple):
    serial: int
    position: int
    data: bytes | None  # None: the file was truncated or extended to the size `position`


class FileContent:
    __slots__ = ("durable", "modified_at", "next_serial", "pending", "visible")

    def __init__(self) -> None:
        self.visible = bytearray()
        self.durable = bytearray()
        self.pending: deque[Change] = deque()
        self.modified_at = 0.0  # virtual seconds
        self.next_serial = 0  # of the next change

    def write(self, position: int, data: bytes) -> None:
        self._change(Change(self.next_serial, position, data))

    def truncate(self, size: int) -> None:
        self._change(Change(self.next_serial, size, None))

    def _change(self, change: Change) -> None:
        apply_change(self.visible, change)
        self.pending.append(change)
        self.next_serial += 1

    def is_clean(self, serial: int) -> bool:
        """Whether a sync that covers this change has ended, with success or not."""
        return not self.pending or self.pending[0].serial > serial

    def synced(self, mark: int) -> None:
        """End a sync that started when `next_serial` was `mark`."""
        for change in self._take_pending(mark):
            apply_change(self.durable, change)

    def sync_failed(self, mark: int, rng: random.Random) -> None:
        for change in self._take_pending(mark):
            if rng.random() < 0.5:
                apply_change(self.durable, change)

    def power_cut(self, rng: random.Random, survival: float) -> None:
        for change in self._take_pending(self.next_serial):
            fate = rng.random()
            if fate < survival:
                apply_change(self.durable, change)
            elif change.data and fate < survival + (1 - survival) / 2:
                apply_torn_write(self.durable, change.position, change.data, rng)
        self.visible = bytearray(self.durable)

    def flip(self, position: int, bit: int) -> None:
        self.visible[position] ^= 1 << bit
        if position < len(self.durable):
            self.durable[position] ^= 1 << bit

    def _take_pending(self, mark: int) -> list[Change]:
        """Remove and return the pending changes below a serial."""
        taken = []
        while self.pending and self.pending[0].serial < mark:
            taken.append(self.pending.popleft())
        return taken


def apply_change(content: bytearray, change: Change) -> None:
    if change.data is None:
        _resize(content, change.position)
    elif change.data:
        if len(content) < change.position:
            _resize(content, change.position)
        content[change.position : change.position + len(change.data)] = change.data


def _resize(content: bytearray, size: int) -> None:
    if size <= len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def apply_torn_write(content: bytearray, position: int, data: bytes, rng: random.Random) -> None:
    """Apply a part of a write: its beginning, or any of its sectors."""
    if rng.random() < 0.5:  # the new size reached the disk before the bytes did
        longer = position + len(data) - len(content)
        if longer > 0:
            content.extend(rng.randbytes(longer) if rng.random() < 0.5 else bytes(longer))
    if rng.random() < 0.5:
        apply_change(content, Change(0, position, data[: rng.randrange(len(data))]))
        return
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR_BYTES - (position + start) % SECTOR_BYTES)
        if rng.random() < 0.5:
            apply_change(content, Change(0, position + start, data[start:end]))
        start = end
