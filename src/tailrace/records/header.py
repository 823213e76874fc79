"""The 61 bytes at the head of every record batch, and the few of them that a broker may change.

    0 base offset      8 length of what follows      12 leader epoch   16 magic (2)   17 CRC-32C of bytes 21…
    21 attributes      23 last offset delta          27 base timestamp                35 max timestamp
    43 producer id     51 producer epoch             53 base sequence                 57 record count

Base offset and leader epoch lie outside the checksum: a leader stamps them and the rest stays as the
producer sent it. LogAppendTime changes the max timestamp and one attribute bit, so it costs a new checksum;
record timestamps inside the batch are then ignored by every reader.
"""

import struct
from typing import Final, NamedTuple

from tailrace.model.faults import CorruptBatch, InvalidBatch, UnsupportedFormat
from tailrace.model.limits import BATCH_HEADER_BYTES, RECORDS_PER_BATCH_MAX
from tailrace.ports.disk import Buffer
from tailrace.records.crc import crc32c

LAYOUT: Final = struct.Struct(">qiibIhiqqqhii")
PREFIX: Final = struct.Struct(">qi")  # base offset and length: enough to step to the next batch
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
ATTRIBUTES_KNOWN: Final = 0x7F  # with 0x40, the delete horizon that compaction writes
COMPRESSIONS_KNOWN: Final = 4  # none, gzip, snappy, lz4, zstd

assert LAYOUT.size == BATCH_HEADER_BYTES

NO_PRODUCER: Final = -1
RECORD_MIN_BYTES: Final = 7  # length, attributes, two deltas, two lengths and the count of headers


class BatchHeader(NamedTuple):
    base_offset: int
    length: int  # of the batch after these first twelve bytes
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
        """Bytes of the whole batch."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequences wrap around from 2³¹ - 1 to 0."""
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
    """The header at `position`; the caller has made sure that 61 bytes are there."""
    return BatchHeader._make(LAYOUT.unpack_from(data, position))


def check_magic(magic: int) -> None:
    """Refuse every message format but 2."""
    if magic == 2:
        return
    if 0 <= magic < 2:
        raise UnsupportedFormat(f"message format {magic} is not supported; send format 2")
    raise CorruptBatch(f"magic byte {magic} names no known message format")


def check_intact(data: memoryview) -> BatchHeader:
    """The header of the one batch that `data` is, its frame, checksum and attributes checked."""
    if len(data) > MAGIC_AT:
        check_magic(data[MAGIC_AT])
    if len(data) < BATCH_HEADER_BYTES:
        raise CorruptBatch(f"a record batch has at least {BATCH_HEADER_BYTES} bytes, this one {len(data)}")
    header = tuple.__new__(BatchHeader, LAYOUT.unpack_from(data))  # not by name: this is the hottest line of all
    size = header.length + PREFIX_BYTES
    if not BATCH_HEADER_BYTES <= size <= len(data):
        raise CorruptBatch(f"the batch says it has {size} bytes, {len(data)} are there")
    if crc32c(data[CHECKED_FROM:size]) != header.crc:
        raise CorruptBatch(f"checksum {header.crc:#010x} of the batch does not fit its bytes")
    if size != len(data):
        raise InvalidBatch(f"{len(data) - size} bytes stand behind the one batch that may be sent at a time")
    if header.attributes & ~ATTRIBUTES_KNOWN or header.attributes & COMPRESSION_MASK > COMPRESSIONS_KNOWN:
        raise InvalidBatch(f"unknown attributes {header.attributes:#06x}")
    return header


def check_batch(data: memoryview) -> BatchHeader:
    """The header of a batch as a producer sends it: intact, and with one record for every offset.

    A compacted batch may have fewer; that is checked where records are opened."""
    header = check_intact(data)
    if header.records != header.last_offset_delta + 1 or not 0 < header.records <= RECORDS_PER_BATCH_MAX:
        raise InvalidBatch(f"{header.records} records with last offset delta {header.last_offset_delta}")
    if not header.attributes & COMPRESSION_MASK and header.records * RECORD_MIN_BYTES > len(data) - BATCH_HEADER_BYTES:
        raise InvalidBatch(f"{header.records} records cannot stand in {len(data) - BATCH_HEADER_BYTES} bytes")
    return header


def stamp(batch: memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write the two fields that a leader owns; both lie outside the checksum."""
    STAMPED.pack_into(batch, 0, base_offset, len(batch) - PREFIX_BYTES, leader_epoch)


def stamp_append_time(batch: memoryview, now_ms: int, attributes: int) -> None:
    """Make this a LogAppendTime batch of `now_ms`."""
    struct.pack_into(">q", batch, MAX_TIMESTAMP_AT, now_ms)
    struct.pack_into(">h", batch, CHECKED_FROM, attributes | LOG_APPEND_TIME_BIT)
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CHECKED_FROM:]))
