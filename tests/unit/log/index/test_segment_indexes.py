"""Both indexes of a segment as they grow, are truncated, saved and loaded."""

import struct

import pytest

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.index.segment_indexes import Indexes, read_max_timestamp


@pytest.mark.parametrize("data", [bytes(11), struct.pack(">QIQI", 5, 1, 5, 2), struct.pack(">QIQI", 5, 1, 6, 1), b""])
def test_an_invalid_time_index_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        Indexes.load(0, 4096, b"", data, 100)


def test_an_entry_is_made_every_interval() -> None:
    indexes = Indexes(1000, 250)
    for number in range(10):
        indexes.add_batch(1000 + number, number * 100, 100, 50 - number)
    assert list(indexes.offsets.offsets) == [3, 6, 9]
    assert list(indexes.offsets.positions) == [300, 600, 900]
    assert list(indexes.times.timestamps) == [50]  # the highest timestamp never rose again
    assert indexes.lookup(1005) == (1003, 300)


def test_after_a_truncation_the_indexes_are_as_if_built_once() -> None:
    def noted(count: int) -> Indexes:
        indexes = Indexes(0, 250)
        for number in range(count):
            indexes.add_batch(number, number * 100, 100, number % 7)
        return indexes

    for kept in range(20):
        indexes = noted(20)
        _, position = indexes.truncate_to(kept)
        for number in range(position // 100, kept):
            indexes.add_batch(number, number * 100, 100, number % 7)
        for number in range(kept, 30):
            indexes.add_batch(number, number * 100, 100, number % 7)
        assert indexes.offsets.dump() == noted(30).offsets.dump()
        assert indexes.times.dump() == noted(30).times.dump()
        assert indexes.max_timestamp_offset == noted(30).max_timestamp_offset


def test_what_is_saved_is_not_written_again() -> None:
    indexes = Indexes(0, 0)
    for number in range(3):
        indexes.add_batch(number, number * 10, 10, number)
    assert indexes.unsaved
    offsets, times = indexes.take_unsaved()
    assert (len(offsets[0]), offsets[1], len(times[0]), times[1]) == (20, 0, 28, 0)
    assert not indexes.unsaved
    indexes.add_batch(3, 30, 10, 3)
    offsets, times = indexes.take_unsaved()
    assert (len(offsets[0]), offsets[1], len(times[0]), times[1]) == (12, 16, 16, 24)


def files_of(indexes: Indexes) -> tuple[bytes, bytes]:
    files = bytearray(), bytearray()
    for file, (data, position) in zip(files, indexes.take_unsaved(), strict=True):
        file[position:] = data
    return bytes(files[0]), bytes(files[1])


def test_no_flipped_bit_and_no_missing_entry_passes_for_an_index() -> None:
    indexes = Indexes(0, 0)
    for number in range(5):
        indexes.add_batch(number, number * 10, 10, 1000 + number)
    offsets, times = files_of(indexes)
    assert Indexes.load(0, 0, offsets, times, 50).max_timestamp == read_max_timestamp(times) == 1004
    for bit in range(8 * len(offsets)):
        with pytest.raises(Unreadable):
            Indexes.load(0, 0, _flipped(offsets, bit), times, 50)
    for bit in range(8 * len(times)):
        assert read_max_timestamp(_flipped(times, bit)) is None
    for size in range(len(times)):
        assert read_max_timestamp(times[:size]) is None


@pytest.mark.parametrize("kept", [0, 3, 7, 10])
def test_the_checksum_is_carried_on_over_saves_and_truncations(kept: int) -> None:
    indexes, files = Indexes(0, 0), (bytearray(), bytearray())
    for number in [*range(10), *range(kept, 12)]:
        if number == kept:
            indexes.truncate_to(kept)
            if kept:
                indexes.add_batch(kept - 1, (kept - 1) * 10, 10, kept - 1)
        indexes.add_batch(number, number * 10, 10, number)
        for file, (data, position) in zip(files, indexes.take_unsaved(), strict=True):
            file[position:] = data
        again = Indexes.load(0, 0, bytes(files[0]), bytes(files[1]), 1000)
        assert again.offsets.dump() == indexes.offsets.dump()


def _flipped(data: bytes, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)
