"""A file's bytes twice: as every reader sees them, and as they would be found after a power cut.

Changes (writes and truncations) reach `content` at once and wait, numbered, in `pending`; a sync carries those from
before its start over to `durable`, in order. A power cut lets each pending change survive wholly, partly or not at all:

- a write may be torn at a byte, or keep any of its 512-byte sectors;
- where it would have made the file longer, the size may have grown while the bytes are zeros or garbage;
- bytes that were synced and not written over since are never touched.

After a failed sync the kernel calls the pages clean: some changes reached the disk, the others never will.
"""

import random
from collections import deque
from typing import Final, NamedTuple

SECTOR_BYTES: Final = 512


class Change(NamedTuple):
    serial: int
    position: int
    data: bytes | None  # None: the file was cut or stretched to `position`


class Image:
    __slots__ = ("content", "durable", "modified_at", "next_serial", "pending")

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self.pending: deque[Change] = deque()
        self.modified_at = 0.0  # by the loop's clock
        self.next_serial = 0  # every change below it has been made

    def write(self, position: int, data: bytes) -> None:
        self._change(Change(self.next_serial, position, data))

    def truncate(self, size: int) -> None:
        self._change(Change(self.next_serial, size, None))

    def _change(self, change: Change) -> None:
        apply(self.content, change)
        self.pending.append(change)
        self.next_serial += 1

    def is_clean(self, serial: int) -> bool:
        """Whether a sync has covered this change, well or badly."""
        return not self.pending or self.pending[0].serial > serial

    def synced(self, mark: int) -> None:
        """A sync that started when `next_serial` was `mark` has ended."""
        for change in self._taken(mark):
            apply(self.durable, change)

    def sync_failed(self, mark: int, chance: random.Random) -> None:
        for change in self._taken(mark):
            if chance.random() < 0.5:
                apply(self.durable, change)

    def power_cut(self, chance: random.Random, survival: float) -> None:
        for change in self._taken(self.next_serial):
            fate = chance.random()
            if fate < survival:
                apply(self.durable, change)
            elif change.data and fate < survival + (1 - survival) / 2:
                tear(self.durable, change.position, change.data, chance)
        self.content = bytearray(self.durable)

    def flip(self, position: int, bit: int) -> None:
        self.content[position] ^= 1 << bit
        if position < len(self.durable):
            self.durable[position] ^= 1 << bit

    def _taken(self, mark: int) -> list[Change]:
        taken = []
        while self.pending and self.pending[0].serial < mark:
            taken.append(self.pending.popleft())
        return taken


def apply(image: bytearray, change: Change) -> None:
    if change.data is None:
        _resize(image, change.position)
    elif change.data:
        if len(image) < change.position:
            _resize(image, change.position)
        image[change.position : change.position + len(change.data)] = change.data


def _resize(image: bytearray, size: int) -> None:
    if size <= len(image):
        del image[size:]
    else:
        image.extend(bytes(size - len(image)))


def tear(image: bytearray, position: int, data: bytes, chance: random.Random) -> None:
    """Let a part of a write reach the image."""
    if chance.random() < 0.5:  # the size grew, before any of the bytes came
        longer = position + len(data) - len(image)
        if longer > 0:
            image.extend(chance.randbytes(longer) if chance.random() < 0.5 else bytes(longer))
    if chance.random() < 0.5:
        apply(image, Change(0, position, data[: chance.randrange(len(data))]))
        return
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR_BYTES - (position + start) % SECTOR_BYTES)
        if chance.random() < 0.5:
            apply(image, Change(0, position + start, data[start:end]))
        start = end
