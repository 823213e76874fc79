"""Whole numbers of variable length, as they stand inside records.

Seven bits a byte, low bits first, the high bit says that more follow; zigzag puts the sign into the lowest bit, so
that -1 is as short as 1. Lengths and deltas are mostly small: those come from a table.
"""

from typing import Final

from tailrace.model.faults import CorruptBatch

VARINT_MAX_BYTES: Final = 10  # of 64 bits


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_READY: Final = tuple(unsigned_varint(value << 1) for value in range(2048))


def varint(value: int) -> bytes:
    """The zigzag form of any number of 64 bits."""
    if 0 <= value < 2048:
        return _READY[value]
    return unsigned_varint(value << 1 if value >= 0 else ~(value << 1))


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position` and the position after it. IndexError at the end of the data: the caller's to catch."""
    byte = data[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    value = byte & 0x7F | data[position + 1] << 7
    if value < 0x4000:
        return value >> 1 ^ -(value & 1), position + 2
    value, shift = value & 0x3FFF, 14
    for following in range(position + 2, position + VARINT_MAX_BYTES):
        byte = data[following]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), following + 1
        shift += 7
    raise CorruptBatch(f"a number in the batch has more than {VARINT_MAX_BYTES} bytes")


def read_unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """As `read_varint`, for a number without a sign: control records have them."""
    number, position = read_varint(data, position)
    return (number << 1 if number >= 0 else ~(number << 1)), position
