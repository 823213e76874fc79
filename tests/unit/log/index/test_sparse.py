"""The sparse offset and time index: lookups, Kafka's format on disk, and data that is refused as invalid."""

import struct

import pytest

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.index.sparse import OffsetIndex, TimeIndex


def test_offset_lookups() -> None:
    index = OffsetIndex()
    assert index.lookup(5) == (0, 0)
    index.add(10, 100)
    index.add(20, 200)
    assert [index.lookup(offset) for offset in (9, 10, 19, 20, 99)] == [
        (0, 0),
        (10, 100),
        (10, 100),
        (20, 200),
        (20, 200),
    ]
    index.truncate_to(20)
    assert index.lookup(99) == (10, 100)


def test_time_lookups() -> None:
    times = TimeIndex()
    assert times.lookup(5) == 0
    times.add(1000, 10)
    times.add(2000, 20)
    assert [times.lookup(time) for time in (1000, 1001, 2000, 2001)] == [0, 10, 10, 20]
    assert times.last_entry_below(10) is None
    assert times.last_entry_below(11) == (1000, 10)


def test_the_files_have_kafkas_format() -> None:
    offsets, times = OffsetIndex(), TimeIndex()
    for number in range(1, 4):
        offsets.add(number, number * 1000)
        times.add(2**40 + number, number)
    assert offsets.dump() == b"".join(struct.pack(">II", number, number * 1000) for number in range(1, 4))
    assert times.dump(1) == b"".join(struct.pack(">QI", 2**40 + number, number) for number in range(2, 4))
    assert OffsetIndex.load(offsets.dump(), 3001).positions == offsets.positions
    assert TimeIndex.load(times.dump()).timestamps == times.timestamps
    assert TimeIndex.load(times.dump()).offsets == times.offsets


@pytest.mark.parametrize(
    "data",
    [
        bytes(7),
        struct.pack(">IIII", 5, 10, 5, 20),
        struct.pack(">IIII", 5, 10, 6, 10),
        struct.pack(">IIII", 5, 10, 0, 0),  # a page that never reached the disk
        struct.pack(">II", 5, 100),
    ],
)
def test_an_invalid_offset_index_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        OffsetIndex.load(data, 100)
