"""Record batches that were damaged: in transit, or by a producer that computes a fitting checksum over nonsense."""

import random
import struct
from collections.abc import Callable, Mapping
from typing import Final

from crc32c import crc32c

from tailrace.records.header import ATTRIBUTES_KNOWN, CHECKED_FROM, CRC_AT, LAYOUT, MAGIC_AT
from tests.fuzz.requests import batch

FIELDS_FROM: Final = 5  # of the header: attributes and all that follows
WIDTHS: Final = "hiqqqhii"
EXTREMES: Final = {
    "h": (0, -1, 1, 2**15 - 1, -(2**15), ATTRIBUTES_KNOWN, 5, 7, 8, 0x10, 0x20, 0x40),
    "i": (0, -1, 1, 2, 2**31 - 1, -(2**31), 9_999_999, 10_000_000),
    "q": (0, -1, 1, 2**63 - 1, -(2**63), 2**62),
}


def _resealed(data: bytearray) -> bytearray:
    """With a checksum that fits."""
    if len(data) > CHECKED_FROM:
        struct.pack_into(">I", data, CRC_AT, crc32c(bytes(data[CHECKED_FROM:])))
    return data


def _flipped(data: bytearray, chance: random.Random) -> bytearray:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _flipped_and_sealed(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(CHECKED_FROM, len(data))] ^= 1 << chance.randrange(8)
    return _resealed(data)


def _cut(data: bytearray, chance: random.Random) -> bytearray:
    return data[: chance.randrange(len(data))]


def _cut_and_sealed(data: bytearray, chance: random.Random) -> bytearray:
    data = data[: chance.randrange(LAYOUT.size, len(data) + 1)]
    struct.pack_into(">i", data, 8, len(data) - 12)
    return _resealed(data)


def _lengthened(data: bytearray, chance: random.Random) -> bytearray:
    data += chance.randbytes(chance.randrange(1, 100))
    if chance.random() < 0.7:
        struct.pack_into(">i", data, 8, len(data) - 12)
    return _resealed(data)


def _one_field(data: bytearray, chance: random.Random) -> bytearray:
    values = list(LAYOUT.unpack_from(data))
    field = chance.randrange(len(WIDTHS))
    values[FIELDS_FROM + field] = chance.choice(EXTREMES[WIDTHS[field]])
    LAYOUT.pack_into(data, 0, *values)
    return _resealed(data)


def _length_field(data: bytearray, chance: random.Random) -> bytearray:
    struct.pack_into(">i", data, 8, chance.choice([0, -1, 48, 49, 2**31 - 1, -(2**31), len(data)]))
    return data


def _garbage_body(data: bytearray, chance: random.Random) -> bytearray:
    data[LAYOUT.size :] = chance.randbytes(len(data) - LAYOUT.size)
    return _resealed(data)


def _other_codec(data: bytearray, chance: random.Random) -> bytearray:
    struct.pack_into(">h", data, CHECKED_FROM, chance.randrange(8))
    return _resealed(data)


def _two(data: bytearray, chance: random.Random) -> bytearray:
    return data + batch(chance)


def _old_format(data: bytearray, chance: random.Random) -> bytearray:
    data[MAGIC_AT] = chance.choice([0, 1, 3, 255])
    return data


DAMAGES: Final[Mapping[str, Callable[[bytearray, random.Random], bytearray]]] = {
    "batch: bits": _flipped,
    "batch: bits, CRC fits": _flipped_and_sealed,
    "batch: cut": _cut,
    "batch: cut, CRC fits": _cut_and_sealed,
    "batch: longer": _lengthened,
    "batch: one field": _one_field,
    "batch: its length": _length_field,
    "batch: garbage inside": _garbage_body,
    "batch: another codec": _other_codec,
    "batch: two": _two,
    "batch: old format": _old_format,
}
