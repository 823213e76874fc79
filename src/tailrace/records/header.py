"""The header of a record batch, 61 bytes, and the few fields that a broker may change.

    0 base offset      8 length of what follows      12 leader epoch   16 magic (2)   17 CRC-32C of bytes 21…
    21 attributes      23 last offset delta          27 base timestamp                35 max timestamp
    43 producer id     51 producer epoch             53 base sequence                 57 record count

The checksum does not cover base offset and leader epoch: a leader sets them and leaves the rest as the producer sent
it. LogAppendTime changes the max timestamp and one attribute bit, so it needs a new checksum; readers then ignore the
timestamps of the records.
"""

import struct
from typing import Final, NamedTuple

from tailrace.model.faults import CorruptBatch, InvalidBatch, UnsupportedFormat
from tailrace.model.limits import BATCH_HEADER_BYTES, RECORDS_PER_BATCH_MAX
from tailrace.ports.disk import Buffer
from tailrace.records.crc import crc32c

LAYOUT: Final = struct.Struct(">qiibIhiqqqhii")
PREFIX: Final = struct.Struct(">qi")  # base offset and length: enough to find the next batch
PREFIX_BYTES: Final = PREFIX.size
EPOCH_AT: Final = 12
STAMPED: Final = struct.Struct(">qii")  # base offset, length and leader epoch
MAGIC_AT: Final = 16
CRC_AT: Final = 17
CHECKED_FROM: Final = 21
MAX_TIMESTAMP_AT: Final = 35

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
ATTRIBUTES_KNOWN: Final = 0x7F  # 0x40 is the delete horizon flag, set by compaction
COMPRESSIONS_KNOWN: Final = 4  # none, gzip, snappy, lz4, zstd

assert LAYOUT.size == BATCH_HEADER_BYTES

NO_PRODUCER: Final = -1
RECORD_MIN_BYTES: Final = 7  # length, attributes, two deltas, two lengths and the header count


class BatchHeader(NamedTuple):
    base_offset: int
    length: int  # of the batch after base offset and length, the first twelve bytes
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; sequence numbers wrap around from 2³¹ - 1 to 0."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; the caller has checked that 61 bytes are there."""
    return BatchHeader._make(LAYOUT.unpack_from(data, position))


def check_magic(magic: int) -> None:
    """Refuse every message format other than 2."""
    if magic == 2:
        return
    if 0 <= magic < 2:
        raise UnsupportedFormat(f"message format {magic} is not supported; send format 2")
    raise CorruptBatch(f"unknown magic byte {magic}")


def check_intact(data: memoryview) -> BatchHeader:
    """The header of `data`, a single batch; its size, checksum and attributes are checked."""
    if len(data) > MAGIC_AT:
        check_magic(data[MAGIC_AT])
    if len(data) < BATCH_HEADER_BYTES:
        raise CorruptBatch(f"record batch of {len(data)} bytes; the header alone has {BATCH_HEADER_BYTES}")
    header = tuple.__new__(BatchHeader, LAYOUT.unpack_from(data))  # faster than `_make`: this runs for every batch
    size = header.length + PREFIX_BYTES
    if not BATCH_HEADER_BYTES <= size <= len(data):
        raise CorruptBatch(f"record batch of {len(data)} bytes, its header says {size}")
    computed = crc32c(data[CHECKED_FROM:size])
    if computed != header.crc:
        raise CorruptBatch(f"corrupt record batch: stored checksum {header.crc:#010x}, computed {computed:#010x}")
    if size != len(data):
        raise InvalidBatch(f"{len(data) - size} bytes after the record batch; only one batch per partition may be sent")
    if header.attributes & ~ATTRIBUTES_KNOWN or header.attributes & COMPRESSION_MASK > COMPRESSIONS_KNOWN:
        raise InvalidBatch(f"record batch with unknown attributes {header.attributes:#06x}")
    return header


def check_batch(data: memoryview) -> BatchHeader:
    """The header of a producer's batch: intact, and with one record for every offset.

    Compacted batches may have fewer records; `opened` checks those.
    """
    header = check_intact(data)
    if header.records != header.last_offset_delta + 1 or not 0 < header.records <= RECORDS_PER_BATCH_MAX:
        raise InvalidBatch(f"{header.records} records in a batch with last offset delta {header.last_offset_delta}")
    if not header.attributes & COMPRESSION_MASK and header.records * RECORD_MIN_BYTES > len(data) - BATCH_HEADER_BYTES:
        raise InvalidBatch(f"{header.records} records do not fit in {len(data) - BATCH_HEADER_BYTES} bytes")
    return header


def stamp(batch: memoryview, base_offset: int, leader_epoch: int) -> None:
    """Set the two fields that a leader owns; the checksum does not cover them."""
    STAMPED.pack_into(batch, 0, base_offset, len(batch) - PREFIX_BYTES, leader_epoch)


def stamp_append_time(batch: memoryview, now_ms: int, attributes: int) -> None:
    """Set the batch's timestamp type to LogAppendTime and its timestamp to `now_ms`."""
    struct.pack_into(">q", batch, MAX_TIMESTAMP_AT, now_ms)
    struct.pack_into(">h", batch, CHECKED_FROM, attributes | LOG_APPEND_TIME_BIT)
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CHECKED_FROM:]))
