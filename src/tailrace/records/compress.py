"""The four compression codecs of record batches, in the framing that Kafka uses for each.

- gzip and zstd are plain streams of those formats; lz4 is the frame format with independent blocks, because Kafka's
  reader does not support linked ones.
- snappy has the framing of snappy-java: a header of 16 bytes, then blocks of at most 32 KiB, each a raw snappy block
  after its length in four bytes. Some clients write a single raw block without framing; both forms are read.

Decompression never allocates more than its bound: a few kilobytes may decompress to gigabytes, and most frames do not
contain their decompressed size. So the output goes into a buffer of fixed size; when it is full, decompression starts
again with a larger buffer, up to the bound. The retries cost at most a third more work, and a decompression bomb costs
one buffer of the size of the bound.
"""

from struct import Struct
from typing import Final, Literal

import cramjam

from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch
from tailrace.model.limits import DECOMPRESSED_MAX_BYTES, KiB
from tailrace.ports.disk import Buffer

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
COMPRESSIONS: Final[tuple[Compression, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")  # by id in the attributes

FIRST_TRY_MIN_BYTES: Final = 64 * KiB
GROWTH: Final = 4
GZIP_LEVEL: Final = 6
LZ4_LEVEL: Final = 1
ZSTD_LEVEL: Final = 3

SNAPPY_HEADER: Final = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"  # magic, version, oldest version that can read it
SNAPPY_MAGIC: Final = SNAPPY_HEADER[:8]
SNAPPY_BLOCK_BYTES: Final = 32 * KiB
SNAPPY_RATIO_MAX: Final = 22  # no element of a snappy block yields more than 64 bytes from 3
_LENGTH: Final = Struct(">i")
_BUFFER_FULL: Final = "failed to write whole buffer"  # in cramjam's error; it has no separate exception for this


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """`level` is one of the codec's own library; None: its default here."""
    if codec == "none":
        return bytes(data)
    if codec == "gzip":
        return bytes(cramjam.gzip.compress(data, level=GZIP_LEVEL if level is None else level))
    if codec == "snappy":
        return _compress_snappy(memoryview(data))
    if codec == "lz4":
        compressor = cramjam.lz4.Compressor(level=level or LZ4_LEVEL, content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        return bytes(compressor.finish())
    return bytes(cramjam.zstd.compress(data, level=ZSTD_LEVEL if level is None else level))


def decompress(codec: int, data: Buffer, max_bytes: int = DECOMPRESSED_MAX_BYTES) -> bytes:
    """`data`, decompressed with the codec of this id.

    `CorruptBatch` if it is not a stream of that codec, `BatchTooLarge` if it holds more than `max_bytes`.
    """
    if not 0 <= codec < len(COMPRESSIONS):
        raise InvalidBatch(f"unknown compression type id {codec}")
    name = COMPRESSIONS[codec]
    if name == "none":
        return bytes(data)
    try:
        if name == "snappy":
            return _decompress_snappy(memoryview(data), max_bytes)
        return _decompress_stream(name, data, max_bytes)
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"cannot decompress the {name} stream of the batch: {error}") from None


def _decompress_stream(name: Literal["gzip", "lz4", "zstd"], data: Buffer, max_bytes: int) -> bytes:
    size = min(max_bytes, max(FIRST_TRY_MIN_BYTES, GROWTH * len(data)))
    while (out := _decompress_within(name, data, size)) is None:
        if size == max_bytes:
            raise _too_large(name, max_bytes)
        size = min(max_bytes, GROWTH * size)
    return out


def _decompress_within(name: Literal["gzip", "lz4", "zstd"], data: Buffer, size: int) -> bytes | None:
    """The whole output; None: it is larger than `size`."""
    codec = {"gzip": cramjam.gzip, "lz4": cramjam.lz4, "zstd": cramjam.zstd}[name]
    out = bytearray(size)
    try:
        written = codec.decompress_into(data, out)
    except cramjam.DecompressionError as error:
        if _BUFFER_FULL in str(error):
            return None
        raise
    return bytes(memoryview(out)[:written])


def _compress_snappy(data: memoryview) -> bytes:
    out = bytearray(SNAPPY_HEADER)
    for start in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + SNAPPY_BLOCK_BYTES]))
        out += _LENGTH.pack(len(block))
        out += block
    return bytes(out)


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    if data[: len(SNAPPY_MAGIC)] != SNAPPY_MAGIC:
        return _decompress_block(data, max_bytes)
    out = bytearray()
    position = len(SNAPPY_HEADER)
    while position < len(data):
        start = position + _LENGTH.size
        size = _LENGTH.unpack_from(data, position)[0] if start <= len(data) else -1
        if not 0 <= size <= len(data) - start:
            raise CorruptBatch("a snappy block of the batch is longer than the batch")
        out += _decompress_block(data[start : start + size], max_bytes - len(out))
        position = start + size
    return bytes(out)


def _decompress_block(block: memoryview, max_bytes: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > SNAPPY_RATIO_MAX * len(block):
        raise CorruptBatch(f"a snappy block of {len(block)} bytes cannot hold {size} bytes")
    if size > max_bytes:
        raise _too_large("snappy", max_bytes)
    output = bytearray(size)
    written = cramjam.snappy.decompress_raw_into(block, output)
    if written != size:
        raise CorruptBatch(f"a snappy block holds {written} bytes, its header says {size}")
    return bytes(output)


def _too_large(name: str, max_bytes: int) -> BatchTooLarge:
    return BatchTooLarge(f"the {name} stream of the batch holds more than {max_bytes} bytes")
