"""The four compressions of record batches, in the framing Kafka gives each of them.

- gzip and zstd are plain streams of those formats; lz4 is the frame format with independent blocks, since Kafka's own
  reader knows no linked ones.
- snappy is what snappy-java writes: a header of 16 bytes, then blocks of at most 32 KiB, each a raw snappy
  block behind its length in four bytes. Other clients write one raw block alone; both are read.

Decompression never allocates more than it is allowed: a few kilobytes can claim to be gigabytes, and most frames do not
say how large they are. So output goes into a buffer of fixed size, and when it is full, another try gets a larger
one, up to the bound. The tries cost at most a third on top, and a bomb costs one buffer of the bound.
"""

from struct import Struct
from typing import Final, Literal

import cramjam

from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch
from tailrace.model.limits import KiB, decompressed_max_bytes
from tailrace.ports.disk import Buffer

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
compressions: Final[tuple[Compression, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")  # by number in the attributes

first_try_min_bytes: Final = 64 * KiB
growth: Final = 4
gzip_level: Final = 6
lz4_level: Final = 1
zstd_level: Final = 3

snappy_header: Final = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"  # magic, version, oldest version that can read it
snappy_magic: Final = snappy_header[:8]
snappy_block_bytes: Final = 32 * KiB
snappy_ratio_max: Final = 22  # no element of a snappy block yields more than 64 bytes from 3
_length: Final = Struct(">i")
_buffer_full: Final = "failed to write whole buffer"  # how cramjam says so; it has no exception of its own for it


def compress(codec: Compression, data: Buffer) -> bytes:
    if codec == "none":
        return bytes(data)
    if codec == "gzip":
        return bytes(cramjam.gzip.compress(data, level=gzip_level))
    if codec == "snappy":
        return _compress_snappy(memoryview(data))
    if codec == "lz4":
        compressor = cramjam.lz4.Compressor(level=lz4_level, content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        return bytes(compressor.finish())
    return bytes(cramjam.zstd.compress(data, level=zstd_level))


def decompress(codec: int, data: Buffer, max_bytes: int = decompressed_max_bytes) -> bytes:
    """The bytes behind `data`, whose attributes name `codec`.

    `CorruptBatch` when it is no stream of that codec, `BatchTooLarge` when it holds more than `max_bytes`."""
    if not 0 <= codec < len(compressions):
        raise InvalidBatch(f"compression {codec} is not known")
    name = compressions[codec]
    if name == "none":
        return bytes(data)
    try:
        if name == "snappy":
            return _decompress_snappy(memoryview(data), max_bytes)
        return _decompress_stream(name, data, max_bytes)
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"the {name} stream in the batch cannot be read: {error}") from None


def _decompress_stream(name: Literal["gzip", "lz4", "zstd"], data: Buffer, max_bytes: int) -> bytes:
    size = min(max_bytes, max(first_try_min_bytes, growth * len(data)))
    while (out := _decompress_within(name, data, size)) is None:
        if size == max_bytes:
            raise _too_large(name, max_bytes)
        size = min(max_bytes, growth * size)
    return out


def _decompress_within(name: Literal["gzip", "lz4", "zstd"], data: Buffer, size: int) -> bytes | None:
    """The whole output, or None when it is larger than `size`."""
    codec = {"gzip": cramjam.gzip, "lz4": cramjam.lz4, "zstd": cramjam.zstd}[name]
    out = bytearray(size)
    try:
        written = codec.decompress_into(data, out)
    except cramjam.DecompressionError as error:
        if _buffer_full in str(error):
            return None
        raise
    return bytes(memoryview(out)[:written])


def _compress_snappy(data: memoryview) -> bytes:
    out = bytearray(snappy_header)
    for start in range(0, len(data), snappy_block_bytes):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + snappy_block_bytes]))
        out += _length.pack(len(block))
        out += block
    return bytes(out)


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    if data[: len(snappy_magic)] != snappy_magic:
        return _decompress_block(data, max_bytes)
    out = bytearray()
    position = len(snappy_header)
    while position < len(data):
        start = position + _length.size
        size = _length.unpack_from(data, position)[0] if start <= len(data) else -1
        if not 0 <= size <= len(data) - start:
            raise CorruptBatch("a snappy block in the batch is longer than the batch")
        out += _decompress_block(data[start : start + size], max_bytes - len(out))
        position = start + size
    return bytes(out)


def _decompress_block(block: memoryview, max_bytes: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > snappy_ratio_max * len(block):
        raise CorruptBatch(f"a snappy block of {len(block)} bytes cannot hold {size}")
    if size > max_bytes:
        raise _too_large("snappy", max_bytes)
    output = bytearray(size)
    written = cramjam.snappy.decompress_raw_into(block, output)
    if written != size:
        raise CorruptBatch(f"a snappy block says it holds {size} bytes, and holds {written}")
    return bytes(output)


def _too_large(name: str, max_bytes: int) -> BatchTooLarge:
    return BatchTooLarge(f"the {name} stream in the batch holds more than {max_bytes} bytes")
