"""Varints: integers of variable length, as in records.

Each byte has seven bits of the number, low bits first; its high bit is set if more bytes follow. The zigzag encoding
puts the sign into the lowest bit, so -1 is as short as 1. Lengths and deltas are mostly small: a table has those.
"""

from typing import Final

from tailrace.model.faults import CorruptBatch

VARINT_MAX_BYTES: Final = 10  # for 64 bits
UNSIGNED_END: Final = 2**64


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


SMALL_VARINTS: Final = tuple(unsigned_varint(value << 1) for value in range(2048))  # of 0, 1, …


def varint(value: int) -> bytes:
    """The zigzag varint of a 64-bit integer."""
    if 0 <= value < 2048:
        return SMALL_VARINTS[value]
    return unsigned_varint(value << 1 if value >= 0 else ~(value << 1))


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The integer at `position`, and the position after it; IndexError past the end of the data."""
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
        if byte < 0x80 and value < UNSIGNED_END:
            return value >> 1 ^ -(value & 1), following + 1
        shift += 7
    raise CorruptBatch("varint in the batch has more than 64 bits")


def read_unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """As `read_varint`, for the unsigned varints of control records."""
    number, position = read_varint(data, position)
    return (number << 1 if number >= 0 else ~(number << 1)), position
