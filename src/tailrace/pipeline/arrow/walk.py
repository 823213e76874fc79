"""The walk from record to record: the one thing that has to be done in order, since each only says how long it is.

It notes where each record's length stands, and checks nothing but that it ends where the batch does: the rest is
checked for all records at once. It is the only loop over records, so it does as little as it can. And neighbours are
often of one size: where the length of one stands again and again at that distance, each of them is a record, for the
first one is and each leads to the next. Such a run is found by comparing bytes far apart, with no loop at all.
"""

from itertools import repeat
from typing import Final

import numpy as np

from tailrace.model.faults import CorruptBatch
from tailrace.records.varints import VARINT_MAX_BYTES, read_varint

GLANCE: Final = 64  # records that are compared first; a run shorter than that is not worth it
GROWTH: Final = 8  # how many times as many are compared next, when all were alike
STRIDE: Final = 256  # records walked one by one before the next glance


class Walk:
    """Where the lengths of all records stand that were walked over so far."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._numbers = np.frombuffer(data, np.uint8)
        self._runs: list[np.ndarray] = []
        self._places: list[int] = []  # found one by one since the last run

    def through(self, at: int, end: int, count: int) -> None:
        """Over a batch of `count` records, the first at `at`, the last ending at `end`."""
        try:
            while count:
                alike, size = _alike(self._data, self._numbers, at, end, count) if count >= GLANCE else (0, 0)
                if alike >= GLANCE:
                    self._note_run(at, alike, size)
                    at += alike * size
                else:
                    alike = min(count, STRIDE)
                    at = _one_by_one(self._data, at, alike, self._places)
                count -= alike
        except IndexError:
            raise CorruptBatch("the last record of the batch is cut short") from None
        if at != end:
            raise CorruptBatch(f"the records of the batch end {at - end:+} bytes from where it does")

    def places(self) -> np.ndarray:
        return np.concatenate([*self._runs, np.array(self._places, np.int64)])

    def _note_run(self, at: int, count: int, size: int) -> None:
        if self._places:
            self._runs.append(np.array(self._places, np.int64))
            self._places = []
        self._runs.append(np.arange(at, at + count * size, size))


def _alike(data: memoryview, numbers: np.ndarray, at: int, end: int, count: int) -> tuple[int, int]:
    """How many records from here on have the same length, as far as it is worth to know, and that length."""
    length, width = read_varint(bytes(data[at : at + VARINT_MAX_BYTES]), 0)
    size = width + max(length, 0)
    most = min(count, (end - at) // size)
    alike, looked = 0, min(GLANCE, most)
    while alike < most:
        same = numbers[at : at + looked * size : size] == numbers[at]
        for byte in range(1, width):
            same &= numbers[at + byte : at + byte + looked * size : size] == numbers[at + byte]
        if not same.all():
            return int(same.argmin()), size
        alike, looked = looked, min(GROWTH * looked, most)
    return alike, size


def _one_by_one(data: memoryview, at: int, count: int, places: list[int]) -> int:
    note = places.append
    for _ in repeat(None, count):
        note(at)
        size = data[at]
        if size < 0x80:
            at += (size >> 1) + 1
        elif (second := data[at + 1]) < 0x80:
            at += (size & 0x7F | second << 7) // 2 + 2
        else:
            length, width = read_varint(bytes(data[at : at + VARINT_MAX_BYTES]), 0)
            at += width + max(length, 0)
    return at
