"""Which partition a record goes to, as Kafka's own clients choose it: by the murmur2 hash of its key."""

from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash that Kafka's Java client uses for keys."""
    size = len(data)
    found = SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & MASK
        word = (word ^ word >> 24) * MULTIPLIER & MASK
        found = (found * MULTIPLIER & MASK) ^ word
    if size > whole:
        found ^= int.from_bytes(data[whole:], "little")
        found = found * MULTIPLIER & MASK
    found = (found ^ found >> 13) * MULTIPLIER & MASK
    return found ^ found >> 15


def partition_of(key: bytes, count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % count
