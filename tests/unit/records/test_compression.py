"""Each codec has the framing that Kafka expects, and decompression bombs are stopped at the bound."""

import subprocess
import sys
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import snappy
import zstandard

from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch
from tailrace.model.limits import MiB
from tailrace.records.compress import COMPRESSIONS, SNAPPY_HEADER, Compression, compress, decompress

text = b"".join(b"line %d of a text that repeats itself\n" % number for number in range(5000))
packed = COMPRESSIONS[1:]
number_of = {name: number for number, name in enumerate(COMPRESSIONS)}


@pytest.mark.parametrize("data", [b"", b"x", text], ids=["empty", "one byte", "text"])
@pytest.mark.parametrize("codec", COMPRESSIONS)
def test_decompression_reverses_compression(codec: Compression, data: bytes) -> None:
    for form in (data, bytearray(data), memoryview(data)):
        assert decompress(number_of[codec], compress(codec, form)) == data
    assert decompress(number_of[codec], memoryview(compress(codec, data))) == data


def test_other_libraries_decompress_our_streams() -> None:
    assert zlib.decompress(compress("gzip", text), wbits=31) == text
    assert lz4.frame.decompress(compress("lz4", text)) == text
    assert zstandard.ZstdDecompressor().decompress(compress("zstd", text)) == text


def test_lz4_blocks_are_independent() -> None:
    # KafkaLZ4BlockInputStream refuses linked blocks.
    assert not lz4.frame.get_frame_info(compress("lz4", text))["block_linked"]


def test_snappy_has_the_framing_of_snappy_java() -> None:
    framed = compress("snappy", text)
    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    size = int.from_bytes(framed[16:20], "big")
    assert snappy.uncompress(framed[20 : 20 + size]) == text[: 32 * 1024]


def test_streams_without_a_size_are_read() -> None:
    zstd = zstandard.ZstdCompressor(write_content_size=False).compress(text)
    assert decompress(number_of["zstd"], zstd) == text
    assert decompress(number_of["lz4"], lz4.frame.compress(text, store_size=False, block_linked=True)) == text
    assert decompress(number_of["snappy"], snappy.compress(text)) == text


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_streams_in_several_parts_are_read(codec: Compression) -> None:
    assert decompress(number_of[codec], compress(codec, text[:1000]) + compress(codec, text[1000:])) == text


@pytest.mark.parametrize("codec", packed)
def test_the_bound_is_exact(codec: Compression) -> None:
    stream = compress(codec, text)
    assert decompress(number_of[codec], stream, len(text)) == text
    with pytest.raises(BatchTooLarge, match="holds more than"):
        decompress(number_of[codec], stream, len(text) - 1)


@pytest.mark.parametrize("codec", packed)
def test_a_truncated_stream_is_corrupt(codec: Compression) -> None:
    stream = compress(codec, text)
    for cut in (1, 3, 5, 17, len(stream) // 2, len(stream) - 1):
        with pytest.raises(CorruptBatch, match=codec):
            decompress(number_of[codec], stream[:cut])


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        SNAPPY_HEADER + b"\0\0",
        SNAPPY_HEADER + b"\xff\xff\xff\xff",
        SNAPPY_HEADER + b"\x7f\xff\xff\xff" + b"x" * 20,
        b"\xff\xff\xff\xff\x0f" + b"x" * 20,  # a block with a length of 4 GiB
    ],
)
def test_wrong_snappy_lengths_are_corrupt(stream: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decompress(number_of["snappy"], stream)


def test_an_unknown_codec_is_refused() -> None:
    for codec in (-1, 5, 7):
        with pytest.raises(InvalidBatch):
            decompress(codec, b"")


def zstd_bomb(mebibytes: int) -> bytes:
    stream = zstandard.ZstdCompressor(level=1).compressobj()
    return b"".join([*(stream.compress(bytes(MiB)) for _ in range(mebibytes)), stream.flush()])


def gzip_bomb(mebibytes: int) -> bytes:
    stream = zlib.compressobj(1, wbits=31)
    return b"".join([*(stream.compress(bytes(MiB)) for _ in range(mebibytes)), stream.flush()])


def lz4_bomb(mebibytes: int) -> bytes:
    stream = lz4.frame.LZ4FrameCompressor(block_linked=False)
    return b"".join([stream.begin(), *(stream.compress(bytes(MiB)) for _ in range(mebibytes)), stream.flush()])


def snappy_bomb(mebibytes: int) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(MiB)))
    return SNAPPY_HEADER + (len(block).to_bytes(4, "big") + block) * mebibytes


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [("gzip", gzip_bomb(64)), ("snappy", snappy_bomb(64)), ("lz4", lz4_bomb(64)), ("zstd", zstd_bomb(64))],
    ids=packed,
)
def test_a_bomb_allocates_no_more_than_the_bound(codec: Compression, bomb: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge):
            decompress(number_of[codec], bomb, 4 * MiB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * MiB


MEASURE = """
import resource, sys
from tailrace.model.faults import BatchTooLarge
from tailrace.records.compress import decompress
bomb = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(4, bomb, 1 << 24)
except BatchTooLarge:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_ten_gigabytes_of_zeros_do_not_fill_the_memory() -> None:
    # One frame of 1 GiB, ten times. In its own process, because the codec's own allocations count, too.
    bomb = zstd_bomb(1024) * 10
    answer = subprocess.run([sys.executable, "-c", MEASURE], input=bomb, capture_output=True, check=True, timeout=60)
    assert int(answer.stdout) < 64 * 1024  # kilobytes
