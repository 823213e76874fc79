"""Read and write many varints at a time: one at each position in an array.

Nearly all varints take one byte, and the rest nearly always two, so each round handles only varints with more bytes.
"""

from typing import Final

import numpy as np

from tailrace.model.faults import CorruptBatch
from tailrace.records.varints import VARINT_MAX_BYTES

LAST_SHIFT: Final = 7 * (VARINT_MAX_BYTES - 1)


def read_varints(data: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The varints at these positions, and the positions after them. The caller must catch IndexError (end of data)."""
    byte = data[at]
    value = (byte & 0x7F).astype(np.uint64)
    after = at + 1
    longer = np.flatnonzero(byte >= 0x80)
    for shift in range(7, 7 * VARINT_MAX_BYTES, 7):
        if not len(longer):
            break
        byte = data[after[longer]]
        if shift == LAST_SHIFT and (byte & 0x7E).any():
            raise CorruptBatch("a number in the batch has more than 64 bits")
        value[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[longer] += 1
        longer = longer[byte >= 0x80]
    if len(longer):
        raise CorruptBatch("a number in the batch has more than 64 bits")
    return unzigzag(value), after


def unzigzag(value: np.ndarray) -> np.ndarray:
    signed = (value >> np.uint64(1)).astype(np.int64)
    return signed ^ -((value & np.uint64(1)).astype(np.int64))


def varint_sizes(numbers: np.ndarray) -> np.ndarray:
    """The number of bytes that each number takes as a varint."""
    left = zigzag(numbers)
    sizes = np.ones(len(left), np.int64)
    while (left := left >> np.uint64(7)).any():
        sizes += left > 0
    return sizes


def zigzag(numbers: np.ndarray) -> np.ndarray:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def write_varints(data: np.ndarray, at: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Write a varint at each of these positions. Return the positions after them."""
    left, after = zigzag(numbers), at.copy()
    unfinished = np.arange(len(left))
    while len(unfinished):
        value = left[unfinished]
        more = value > 0x7F
        data[after[unfinished]] = (value & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << 7)
        after[unfinished] += 1
        left[unfinished] = value >> np.uint64(7)
        unfinished = unfinished[more]
    return after
