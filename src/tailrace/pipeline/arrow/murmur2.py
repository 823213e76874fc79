"""The partition of each key, as Kafka's own clients choose it: murmur2, for all keys at once.

Each round hashes the next four bytes of all keys that are long enough; shorter keys have dropped out by then.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SEED: Final = np.uint32(0x9747B28C)
MIXER: Final = np.uint32(0x5BD1E995)
SHIFT: Final = np.uint32(24)


def partitions_of(keys: pa.Array, count: int) -> np.ndarray:
    """The partition of each key, out of `count` partitions; null keys are treated as empty."""
    return ((hashes(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int64)


def hashes(keys: pa.Array) -> np.ndarray:
    keys = pc.fill_null(keys, b"")
    edges = np.frombuffer(keys.buffers()[1], np.int32, len(keys) + 1, 4 * keys.offset).astype(np.int64)
    start, length = edges[:-1], np.diff(edges)
    raw = keys.buffers()[2]
    data = np.concatenate(
        [np.frombuffer(raw, np.uint8) if raw is not None else np.empty(0, np.uint8), np.zeros(4, np.uint8)]
    )
    with np.errstate(over="ignore"):
        return _mixed(data, start, length)


def _mixed(data: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    value = SEED ^ length.astype(np.uint32)
    words = length // 4
    for number in range(int(words.max(initial=0))):
        those = np.flatnonzero(words > number)
        word = _word(data, start[those] + 4 * number) * MIXER
        word ^= word >> SHIFT
        value[those] = value[those] * MIXER ^ word * MIXER
    rest = length % 4
    tail = _word(data, start + 4 * words) & ((np.uint32(1) << (8 * rest).astype(np.uint32)) - np.uint32(1))
    value = np.where(rest > 0, (value ^ tail) * MIXER, value)
    value ^= value >> np.uint32(13)
    value *= MIXER
    return value ^ (value >> np.uint32(15))


def _word(data: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The four bytes at each of these positions as a little-endian number."""
    bytes_of = [data[at + place].astype(np.uint32) << np.uint32(8 * place) for place in range(4)]
    return bytes_of[0] | bytes_of[1] | bytes_of[2] | bytes_of[3]
