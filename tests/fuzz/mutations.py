"""Ways to damage a valid frame. Each gets a frame of its own, another to steal from, and a seeded generator."""

import random
import struct
from collections.abc import Callable, Mapping
from typing import Final

from tests.fuzz.requests import EVERY_REQUEST

KEYS: Final = sorted({key for key, _ in EVERY_REQUEST})
HEADER_BYTES: Final = 8  # API key, version and correlation id: most mutations leave these alone, to get further
VARINT_BOMBS: Final = (
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 10,
    b"\x80\x80\x80\x80\x00",
    b"\xfe" * 5,
)
COUNT_BOMBS: Final = (2**31 - 1, 2**24, 1_000_000, 100_000, 10_000, 200, -1, -2, -(2**31))
NUMBERS: Final = {">h": 16, ">i": 32, ">q": 64}

Mutation = Callable[[bytearray, bytearray, random.Random], bytearray]


def _flip(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.choice([1, 1, 2, 8])):
        frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
    return frame


def _truncate(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    return frame[: chance.randrange(1, len(frame))]


def _extend(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    return frame + chance.randbytes(chance.randrange(1, 64))


def _overwrite(frame: bytearray, chance: random.Random, data: bytes) -> bytearray:
    at = chance.randrange(min(HEADER_BYTES, len(frame)), len(frame) + 1)
    frame[at : at + len(data)] = data
    return frame


def _varint_bomb(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    return _overwrite(frame, chance, chance.choice(VARINT_BOMBS))


def _count_bomb(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    return _overwrite(frame, chance, struct.pack(">i", chance.choice(COUNT_BOMBS)))


def _extreme_number(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    form, bits = chance.choice([*NUMBERS.items()])
    most = 2 ** (bits - 1)
    return _overwrite(frame, chance, struct.pack(form, chance.choice([0, -1, -2, most - 1, -most, 1])))


def _insert(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(min(HEADER_BYTES, len(frame)), len(frame) + 1)
    frame[at:at] = chance.randbytes(chance.choice([1, 2, 4, 8]))
    return frame


def _remove(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(min(HEADER_BYTES, len(frame)), len(frame) + 1)
    del frame[at : at + chance.choice([1, 2, 4, 8])]
    return frame


def _swap(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    first, second, third = sorted(chance.randrange(min(HEADER_BYTES, len(frame)), len(frame) + 1) for _ in range(3))
    return frame[:first] + frame[second:third] + frame[first:second] + frame[third:]


def _splice(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(min(HEADER_BYTES, len(frame)), len(frame) + 1)
    return frame[:at] + other[chance.randrange(len(other)) :]


def _repeat(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(min(HEADER_BYTES, len(frame)), len(frame) + 1)
    piece = frame[at : at + chance.randrange(1, 40)]
    frame[at:at] = piece * chance.choice([1, 2, 50])
    return frame


def _version(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    (now,) = struct.unpack_from(">h", frame, 2)
    struct.pack_into(">h", frame, 2, chance.choice([max(now - 1, 0), now + 1, chance.randrange(20), -1, 32767, 99]))
    return frame


def _api(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    struct.pack_into(">h", frame, 0, chance.choice([chance.choice(KEYS), chance.choice(KEYS), -1, 9, 36, 32767]))
    return frame


def _tags(frame: bytearray, other: bytearray, chance: random.Random) -> bytearray:
    """Where the last tagged fields were (there are none in most messages), put some: unknown, or lying."""
    tags = bytearray([chance.choice([1, 2, 3, 127])])
    for _ in range(chance.randrange(1, 4)):
        data = chance.randbytes(chance.randrange(20))
        tags += bytes([chance.randrange(128), chance.choice([len(data), len(data), len(data), 127])]) + data
    return frame[:-1] + tags


MUTATIONS: Final[Mapping[str, Mutation]] = {
    "bits": _flip,
    "truncated": _truncate,
    "extended": _extend,
    "varint bomb": _varint_bomb,
    "count bomb": _count_bomb,
    "extreme number": _extreme_number,
    "inserted": _insert,
    "removed": _remove,
    "swapped fields": _swap,
    "spliced": _splice,
    "repeated": _repeat,
    "wrong version": _version,
    "wrong API": _api,
    "tags": _tags,
}

LENGTHS_TOLD: Final[Mapping[str, Callable[[int, random.Random], int]]] = {
    "length: too long": lambda length, chance: length + chance.randrange(1, 1000),
    "length: too short": lambda length, chance: chance.randrange(1, max(length, 2)),
    "length: zero": lambda length, chance: 0,
    "length: negative": lambda length, chance: chance.choice([-1, -(2**31)]),
    "length: the largest": lambda length, chance: chance.choice([100 * 2**20, 2**31 - 1, 0x47455420]),  # "GET "
}
