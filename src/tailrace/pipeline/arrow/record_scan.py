"""Scan from record to record: the only sequential step, since a record's length is needed to find the next record.

The scan notes the position of each record's length field, and only checks that the last record ends where the batch
does: the rest is checked for all records at once. It is the only loop over records, so it does as little as possible.
Adjacent records often have the same size. If the same length field repeats at a distance of exactly that size, each
repetition is a record: the first one is, and each leads to the next. Such a run is found without a loop over records,
by comparing bytes at a fixed stride.
"""

from itertools import repeat
from typing import Final

import numpy as np

from tailrace.model.faults import CorruptBatch
from tailrace.records.varints import VARINT_MAX_BYTES, read_varint

PROBE_RECORDS: Final = 64  # records compared first; a shorter run of equal sizes is not worth it
GROWTH: Final = 8  # factor for how many are compared next if all had the same size
SEQUENTIAL_RECORDS: Final = 256  # records scanned one by one before the next comparison


class RecordScan:
    """The positions of the length fields of all records scanned so far."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._numbers = np.frombuffer(data, np.uint8)
        self._runs: list[np.ndarray] = []
        self._places: list[int] = []  # positions found one by one since the last run

    def scan_batch(self, at: int, end: int, count: int) -> None:
        """Scan a batch of `count` records; the first starts at `at`, the last ends at `end`."""
        try:
            while count:
                scanned, size = (
                    _same_sized(self._data, self._numbers, at, end, count) if count >= PROBE_RECORDS else (0, 0)
                )
                if scanned >= PROBE_RECORDS:
                    self._add_run(at, scanned, size)
                    at += scanned * size
                else:
                    scanned = min(count, SEQUENTIAL_RECORDS)
                    at = _one_by_one(self._data, at, scanned, self._places)
                count -= scanned
        except IndexError:
            raise CorruptBatch("the last record of the batch is cut short") from None
        if at != end:
            raise CorruptBatch(f"the records of the batch end {at - end:+} bytes from where it does")

    def positions(self) -> np.ndarray:
        return np.concatenate([*self._runs, np.array(self._places, np.int64)])

    def _add_run(self, at: int, count: int, size: int) -> None:
        if self._places:
            self._runs.append(np.array(self._places, np.int64))
            self._places = []
        self._runs.append(np.arange(at, at + count * size, size))


def _same_sized(data: memoryview, numbers: np.ndarray, at: int, end: int, count: int) -> tuple[int, int]:
    """How many records from `at` on have the same size, as far as they were compared, and that size."""
    length, width = read_varint(bytes(data[at : at + VARINT_MAX_BYTES]), 0)
    size = width + max(length, 0)
    most = min(count, (end - at) // size)
    same_sized, looked = 0, min(PROBE_RECORDS, most)
    while same_sized < most:
        same = numbers[at : at + looked * size : size] == numbers[at]
        for byte in range(1, width):
            same &= numbers[at + byte : at + byte + looked * size : size] == numbers[at + byte]
        if not same.all():
            return int(same.argmin()), size
        same_sized, looked = looked, min(GROWTH * looked, most)
    return same_sized, size


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
