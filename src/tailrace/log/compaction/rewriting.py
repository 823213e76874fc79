"""A batch with some of its records, or none, and everything else as it was.

Records are encoded relative to the base offset and the base timestamp of their batch. Both stay, so the bytes of the
records that are kept stay as well.
"""

from collections.abc import Sequence

from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.records.build import seal_batch
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.header import COMPRESSION_MASK, LOG_APPEND_TIME_BIT, BatchHeader
from tailrace.records.varints import read_varint


def with_records(header: BatchHeader, body: bytes, starts: Sequence[int], kept: Sequence[int]) -> bytearray:
    """The batch with the records of these indexes; `starts`: where each record begins in `body`, and where it ends."""
    max_timestamp = header.max_timestamp
    if not header.attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = header.base_timestamp + max(_timestamp(body, starts[index]) for index in kept)
    records = b"".join([body[starts[index] : starts[index + 1]] for index in kept])
    return _sealed(header, records, len(kept), max_timestamp, header.compression)


def emptied(header: BatchHeader) -> bytearray:
    """The batch without records. It is not compressed: there is nothing to compress."""
    stays = header.attributes & LOG_APPEND_TIME_BIT
    return _sealed(header, b"", 0, header.max_timestamp if stays else -1, 0)


def is_emptied(batch: memoryview, header: BatchHeader) -> bool:
    return len(batch) == BATCH_HEADER_BYTES and header.records == 0


def _sealed(header: BatchHeader, records: bytes, count: int, max_timestamp: int, codec: int) -> bytearray:
    return seal_batch(
        records,
        count=count,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=max_timestamp,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        compression=COMPRESSIONS[codec],
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        flags=header.attributes & ~COMPRESSION_MASK,
    )


def _timestamp(body: bytes, start: int) -> int:
    while body[start] >= 0x80:  # the record's length
        start += 1
    start += 2  # and its attributes
    byte = body[start]
    return byte >> 1 ^ -(byte & 1) if byte < 0x80 else read_varint(body, start)[0]
