"""A set of offsets, as bits in chunks: an eighth of a byte for each offset of a chunk that has any."""

from collections.abc import Iterable
from typing import Final

CHUNK_SHIFT: Final = 13
CHUNK_BYTES: Final = 1 << CHUNK_SHIFT - 3
_MASK: Final = (1 << CHUNK_SHIFT) - 1
_BYTE_MASK: Final = CHUNK_BYTES - 1
_NONE: Final = bytes(CHUNK_BYTES)


class OffsetSet:
    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}

    @property
    def bytes(self) -> int:
        return len(self._chunks) * (CHUNK_BYTES + 128)

    def add(self, offsets: Iterable[int]) -> None:
        chunks = self._chunks
        for offset in offsets:
            try:
                chunk = chunks[offset >> CHUNK_SHIFT]
            except KeyError:
                chunk = chunks[offset >> CHUNK_SHIFT] = bytearray(CHUNK_BYTES)
            chunk[offset >> 3 & _BYTE_MASK] |= 1 << (offset & 7)

    def between(self, first: int, last: int) -> int:
        """The offsets from `first` to `last` as bits, `first` the lowest one."""
        low, high = first >> CHUNK_SHIFT, last >> CHUNK_SHIFT
        chunks = self._chunks
        if low == high:
            raw = bytes(chunks.get(low, b""))
        else:
            raw = b"".join(chunks.get(number, _NONE) for number in range(low, high + 1))
        return int.from_bytes(raw, "little") >> (first & _MASK) & (1 << last - first + 1) - 1
