"""Which records of a ShareFetch response were acquired, which offsets are gaps, and what cannot be read."""

import pytest

from tailrace.client.faults import ClientError
from tailrace.client.shares import acquired as module
from tailrace.client.shares.acquired import ACQUIRED_MAX, Acquired
from tailrace.records import opened as opened_module
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord, Record
from tailrace.wire.messages.share_fetch import AcquiredRecords, PartitionShareFetched


def acquired(answer: PartitionShareFetched) -> Acquired:
    return module.AcquiredRecords().of(answer)


def batch(first: int, count: int) -> bytearray:
    return build_batch([NewRecord(b"%d" % (first + at)) for at in range(count)], base_offset=first)


def fetched(records: bytes | bytearray, *ranges: tuple[int, int, int]) -> PartitionShareFetched:
    return PartitionShareFetched(
        partition=0,
        records=bytes(records),
        acquired_records=tuple(
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count) for first, last, count in ranges
        ),
    )


def test_only_acquired_records_of_a_batch_are_ours() -> None:
    found = acquired(fetched(batch(0, 10) + batch(10, 5), (2, 3, 1), (8, 11, 2)))
    assert [(one.offset, one.value, count) for one, count in found.records] == [
        (2, b"2", 1),
        (3, b"3", 1),
        (8, b"8", 2),
        (9, b"9", 2),
        (10, b"10", 2),
        (11, b"11", 2),
    ]
    assert (found.gaps, found.unreadable) == ([], [])


def test_offsets_without_a_record_are_gaps() -> None:
    control = build_batch([NewRecord(b"")], base_offset=6, control=True)
    found = acquired(fetched(batch(4, 2) + control, (2, 8, 1)))
    assert [one.offset for one, _ in found.records] == [4, 5]
    assert found.gaps == [2, 3, 6, 7, 8]


def test_a_damaged_batch_does_not_spoil_the_others() -> None:
    damaged = batch(2, 3)
    damaged[-1] ^= 1
    found = acquired(fetched(batch(0, 2) + damaged + batch(5, 1), (1, 5, 1)))
    assert [one.offset for one, _ in found.records] == [1, 5]
    assert found.unreadable == [2, 3, 4]


def test_ranges_that_cannot_be_true() -> None:
    with pytest.raises(ClientError, match="offsets 0 to"):
        acquired(fetched(b"", (0, ACQUIRED_MAX, 1)))
    with pytest.raises(ClientError, match="offsets 5 to 4"):
        acquired(fetched(b"", (5, 4, 1)))


def test_bytes_that_are_no_batches() -> None:
    with pytest.raises(ClientError, match="no valid record batches"):
        acquired(fetched(b"x" * 70, (0, 1, 1)))


def test_a_batch_that_comes_again_is_not_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def open_batch(data: memoryview) -> list[Record]:
        opened.append(len(data))
        return opened_module.open_batch(data)

    monkeypatch.setattr(module, "open_batch", open_batch)
    records = module.AcquiredRecords()
    for offset in range(10):
        (found,) = records.of(fetched(batch(0, 10), (offset, offset, 1))).records
        assert found[0].value == b"%d" % offset
    assert len(opened) == 1
    for first in range(100, 200, 10):  # others push it out
        records.of(fetched(batch(first, 10), (first, first, 1)))
    records.of(fetched(batch(0, 10), (3, 3, 1)))
    assert len(opened) == 12
