"""Checked against kafka-python and aiokafka: they read our batches, and we read theirs."""

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from kafka.record import default_records as kafka_python_records

from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS, Compression
from tailrace.records.control import leader_change_batch
from tailrace.records.header import check_batch
from tailrace.records.opened import open_batch
from tailrace.records.record import NewRecord

NOW = 1_700_000_000_000
RECORDS = (
    NewRecord(b"first", b"key", (("a", b"1"), ("a", None), ("naïve ☃", b"")), timestamp=NOW),
    NewRecord(None, None, timestamp=NOW - 5_000),
    NewRecord(b"", b"", timestamp=NOW + 86_400_000),
    *(NewRecord(b"value %d " % n * 40, b"%d" % n, timestamp=NOW + n) for n in range(300)),
)

READERS = {
    "kafka-python": kafka_python_records.DefaultRecordBatch,
    "aiokafka": aiokafka_records._DefaultRecordBatchPy,
    "aiokafka-c": aiokafka_records.DefaultRecordBatch,
}
BUILDERS = {
    "kafka-python": kafka_python_records.DefaultRecordBatchBuilder,
    "aiokafka": aiokafka_records._DefaultRecordBatchBuilderPy,
    "aiokafka-c": aiokafka_records.DefaultRecordBatchBuilder,
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("twin", READERS)
def test_they_read_ours(twin: str, compression: Compression) -> None:
    reader: Callable[[bytes], Any] = READERS[twin]
    built = build_batch(
        RECORDS,
        base_offset=1000,
        compression=compression,
        producer_id=17,
        producer_epoch=3,
        base_sequence=40,
        transactional=True,
    )
    batch = reader(bytes(built))
    assert batch.validate_crc()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (17, 3, 40)
    assert batch.is_transactional
    assert not batch.is_control_batch
    assert (batch.base_offset, batch.next_offset) == (1000, 1000 + len(RECORDS))
    assert batch.max_timestamp == NOW + 86_400_000
    read = [NewRecord(one.value, one.key, tuple(one.headers), one.timestamp) for one in batch]
    assert read == list(RECORDS)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("twin", BUILDERS)
def test_we_read_theirs(twin: str, compression: Compression) -> None:
    builder: Any = BUILDERS[twin](
        magic=2,
        compression_type=COMPRESSIONS.index(compression),
        is_transactional=False,
        producer_id=17,
        producer_epoch=3,
        base_sequence=40,
        batch_size=10_000_000,
    )
    for offset, new in enumerate(RECORDS):
        builder.append(offset, new.timestamp, new.key, new.value, list(new.headers))
    theirs = bytes(builder.build())
    header = check_batch(memoryview(theirs))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (17, 3, 40)
    assert header.max_timestamp == NOW + 86_400_000
    assert [NewRecord(one.value, one.key, one.headers, one.timestamp) for one in open_batch(theirs)] == list(RECORDS)


@pytest.mark.parametrize("twin", READERS)
def test_uncompressed_batches_are_the_same_bytes(twin: str) -> None:
    builder: Any = BUILDERS[twin](2, 0, False, -1, -1, -1, 10_000_000)
    for offset, new in enumerate(RECORDS):
        builder.append(offset, new.timestamp, new.key, new.value, list(new.headers))
    theirs = bytes(builder.build())
    assert theirs == bytes(build_batch(RECORDS, leader_epoch=check_batch(memoryview(theirs)).leader_epoch))


@pytest.mark.parametrize("twin", READERS)
def test_they_recognise_a_leader_change_as_a_control_batch(twin: str) -> None:
    reader: Callable[[bytes], Any] = READERS[twin]
    built = leader_change_batch(leader=1, voters=(1,), granting=(1,), base_offset=5, leader_epoch=2, timestamp=NOW)
    batch = reader(bytes(built))
    assert batch.is_control_batch
    assert batch.next_offset == 6
