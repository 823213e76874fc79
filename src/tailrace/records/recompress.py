"""Compress a producer's batch anew, in another codec.

Only the bytes of the records are decompressed and compressed; they are not parsed. So records, headers, timestamps and
offset deltas stay as they were, and so does the batch's header apart from codec, length and checksum. The codecs
release the GIL: this can run in a thread.
"""

from typing import Final, NamedTuple

from tailrace.model.faults import CorruptBatch
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.ports.disk import Buffer
from tailrace.records.build import seal_batch
from tailrace.records.compress import GZIP_LEVEL, LZ4_LEVEL, Compression, decompress
from tailrace.records.header import COMPRESSION_MASK, RECORD_MIN_BYTES, read_header

LZ4_FAST_IN_KAFKA: Final = 9  # Kafka uses the fast compressor for its default level, and the slow one for all others
LZ4_HIGH_LEVELS: Final = (3, 12)  # of the slow compressor


def library_level(codec: Compression, level: int) -> int:
    """A level of Kafka's `compression.*.level` as the codec's library counts."""
    if codec == "gzip":
        return GZIP_LEVEL if level == -1 else level
    if codec == "lz4":
        low, high = LZ4_HIGH_LEVELS
        return LZ4_LEVEL if level == LZ4_FAST_IN_KAFKA else min(max(level, low), high)
    return level


class Recompressed(NamedTuple):
    batch: bytearray
    body: bytes  # its records, not compressed


def recompress(batch: Buffer, codec: Compression, level: int | None, max_bytes: int) -> Recompressed:
    """A batch that passed `check_batch`, in another codec. `max_bytes` bounds the decompressed records.

    `CorruptBatch` if they cannot be decompressed, `BatchTooLarge` if they are larger than the bound."""
    header = read_header(batch)
    body = decompress(header.compression, memoryview(batch)[BATCH_HEADER_BYTES:], max_bytes)
    if header.records * RECORD_MIN_BYTES > len(body):
        raise CorruptBatch(f"{header.records} records do not fit in {len(body)} bytes")
    after = seal_batch(
        body,
        count=header.records,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        compression=codec,
        level=None if level is None else library_level(codec, level),
        flags=header.attributes & ~COMPRESSION_MASK,
    )
    return Recompressed(after, body)
