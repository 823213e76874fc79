"""Read the records of batches. The content is not trusted: producers write it, and a broker stores it unread.

A batch that breaks one of these rules is a `CorruptBatch`: its checksum is right; every length stays within the bytes
left, and every field within its record; offsets rise and stay within the last offset of the header; timestamps fit in
64 bits; the batch has exactly as many records as the header says, and no bytes after them. A compacted batch has fewer
records than offsets, perhaps none.
"""

from collections.abc import Iterator
from typing import Final

from tailrace.model.faults import CorruptBatch
from tailrace.model.limits import BATCH_HEADER_BYTES, DECOMPRESSED_MAX_BYTES
from tailrace.ports.disk import Buffer
from tailrace.records.compress import decompress
from tailrace.records.header import (
    LOG_APPEND_TIME_BIT,
    MAGIC_AT,
    PREFIX,
    PREFIX_BYTES,
    RECORD_MIN_BYTES,
    BatchHeader,
    check_intact,
    check_magic,
    read_header,
)
from tailrace.records.record import Headers, Record
from tailrace.records.varints import read_varint

TIMESTAMP_END: Final = 2**63


def batches(data: Buffer) -> Iterator[tuple[memoryview, BatchHeader]]:
    """The consecutive batches in `data`; only their sizes are checked.

    An incomplete last batch, which a fetch may return, is left out.
    """
    view = memoryview(data)
    position = 0
    while len(view) - position > MAGIC_AT:
        check_magic(view[position + MAGIC_AT])
        size = PREFIX_BYTES + PREFIX.unpack_from(view, position)[1]
        if size < BATCH_HEADER_BYTES:
            raise CorruptBatch(f"record batch at byte {position} has size {size}, less than a header")
        if size > len(view) - position:
            return
        yield view[position : position + size], read_header(view, position)
        position += size


def open_batch(data: Buffer, max_bytes: int = DECOMPRESSED_MAX_BYTES) -> list[Record]:
    """The records of `data`, a single batch."""
    return list(walk_batch(data, max_bytes))


def walk_batch(data: Buffer, max_bytes: int = DECOMPRESSED_MAX_BYTES) -> Iterator[Record]:
    """The records of a batch one by one, without holding all of them; it may raise after the first record."""
    header, body = decompressed(data, max_bytes)
    try:
        yield from _records(header, body)
    except IndexError:
        raise _truncated() from None


def walk_heads(header: BatchHeader, body: bytes) -> Iterator[tuple[int, bool]]:
    """For each record of a `decompressed` batch its timestamp, and whether it has a key; the rest is not read."""
    try:
        for _, stamp, position, _ in _record_heads(header, body):
            yield stamp, read_varint(body, position)[0] >= 0
    except IndexError:
        raise _truncated() from None


def decompressed(data: Buffer, max_bytes: int = DECOMPRESSED_MAX_BYTES) -> tuple[BatchHeader, bytes]:
    """The header and the encoded records of a single batch; only the batch as a whole is checked."""
    view = memoryview(data)
    header = check_intact(view)
    body = decompress(header.compression, view[BATCH_HEADER_BYTES:], max_bytes)
    if not 0 <= header.records <= header.last_offset_delta + 1:
        raise CorruptBatch(f"{header.records} records in a batch with last offset delta {header.last_offset_delta}")
    if header.records * RECORD_MIN_BYTES > len(body):
        raise CorruptBatch(f"{header.records} records do not fit in {len(body)} bytes")
    return header, body


def _truncated() -> CorruptBatch:
    return CorruptBatch("the last record of the batch is truncated")


def _record_heads(header: BatchHeader, body: bytes) -> Iterator[tuple[int, int, int, int]]:
    """For each record its offset delta, its timestamp, where its key begins, and where the record ends."""
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    position, last_delta = 0, -1
    for _ in range(header.records):
        size, position = read_varint(body, position)
        end = position + size
        if not position < end <= len(body):
            raise CorruptBatch(f"record of {size} bytes with {len(body) - position} bytes left")
        timestamp, position = read_varint(body, position + 1)  # after the record attributes: none are defined
        delta, position = read_varint(body, position)
        if position >= end:
            raise CorruptBatch(f"record of {size} bytes ends before its key")
        if not last_delta < delta <= header.last_offset_delta:
            raise CorruptBatch(f"offset delta {delta} after {last_delta}, last offset delta {header.last_offset_delta}")
        last_delta = delta
        stamp = header.base_timestamp + timestamp if append_time is None else append_time
        if not -TIMESTAMP_END <= stamp < TIMESTAMP_END:
            raise CorruptBatch(f"timestamp {header.base_timestamp} + {timestamp} does not fit in 64 bits")
        yield delta, stamp, position, end
        position = end
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes after the last record of the batch")


def _records(header: BatchHeader, body: bytes) -> Iterator[Record]:
    headers: Headers
    for delta, stamp, begin, end in _record_heads(header, body):
        key, position = _read_bytes(body, begin, end)
        value, position = _read_bytes(body, position, end)
        if body[position]:
            headers, position = read_headers(body, position, end)
        else:  # most records have no headers
            headers, position = (), position + 1
        if position != end:
            raise CorruptBatch(f"record ends {position - end:+} bytes from the end that its length says")
        yield Record(header.base_offset + delta, stamp, key, value, headers)


def _read_bytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size = body[position]
    if size < 0x80:  # saves a call for most fields
        size, position = size >> 1 ^ -(size & 1), position + 1
    else:
        size, position = read_varint(body, position)
    if size == -1:
        return None, position
    if not 0 <= size <= end - position:
        raise CorruptBatch(f"field of {size} bytes in a record with {end - position} bytes left")
    return body[position : position + size], position + size


def read_headers(body: bytes, position: int, end: int) -> tuple[Headers, int]:
    """The headers of the record that ends at `end`, and the position after them."""
    count, position = read_varint(body, position)
    if not 0 <= count <= (end - position) // 2:  # a header has at least two lengths
        raise CorruptBatch(f"{count} headers in a record with {end - position} bytes left")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(body, position, end)
        if name is None:
            raise CorruptBatch("record header without a name")
        value, position = _read_bytes(body, position, end)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position
