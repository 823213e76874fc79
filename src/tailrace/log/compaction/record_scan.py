"""The keys and places of the records of a batch, read in one loop.

It refuses what `records.opened` refuses: a batch that does not parse stays as it is. Values are not copied, and varints
of up to three bytes are read in place: a worker spends most of its time here.

Most batches are *plain*: no record is missing, none has headers, all have short keys. `scan_plain` reads only such
batches, in less time, and not where records begin; it leaves any other to `scan`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tailrace.model.faults import CorruptBatch
from tailrace.records.header import LOG_APPEND_TIME_BIT, BatchHeader
from tailrace.records.opened import TIMESTAMP_END, open_batch, read_headers
from tailrace.records.varints import read_varint

TIMESTAMP_FAR: Final = 2**62  # so far from zero, a difference may leave 64 bits; the slow reader checks that


PLAIN_MAX_RECORDS: Final = 8192  # the offset delta of the last one has two bytes


class Scan(NamedTuple):
    keys: list[bytes | None]
    deltas: Sequence[int]  # the records' offsets after the base offset
    starts: list[int]  # where the records begin in the body
    tombstones: list[int]  # the deltas of records with a key and without a value


def scan(batch: memoryview, header: BatchHeader, body: bytes) -> Scan:
    if not -TIMESTAMP_FAR < header.base_timestamp < TIMESTAMP_FAR:
        open_batch(batch)
    found = Scan([], [], [], [])
    try:
        _scan(header, body, found)
    except IndexError:
        raise CorruptBatch("the last record of the batch is truncated") from None
    return found


def scan_plain(header: BatchHeader, body: bytes) -> Scan | None:
    """The same without `starts`; None if the batch is not plain."""
    dense = header.records == header.last_offset_delta + 1 <= PLAIN_MAX_RECORDS
    if not dense or not -TIMESTAMP_FAR < header.base_timestamp < TIMESTAMP_FAR:
        return None
    try:
        return _scan_plain(header.records, body)
    except IndexError:
        return None


def _scan_plain(records: int, body: bytes) -> Scan | None:
    """Whether fields end where their record does is checked once for each record, and where records end once for all.

    All lengths are positive here, so a record that were too long could not be followed by the end of the batch.
    """
    keys: list[bytes | None] = []
    tombstones: list[int] = []
    add_key, position = keys.append, 0
    for delta in range(records):
        size = body[position]
        if size < 0x80:
            position += 1
        elif (more := body[position + 1]) < 0x80:
            size, position = size & 0x7F | more << 7, position + 2
        else:
            size, position = size & 0x7F | (more & 0x7F) << 7 | body[position + 2] << 14, position + 3
        if size & 1 or size >= 0x200000:
            return None
        end = position + (size >> 1) - 1  # where the number of headers must be, a zero
        position += 1  # the record's attributes
        if body[position] < 0x80:  # the timestamp
            position += 1
        elif body[position + 1] < 0x80:
            position += 2
        elif body[position + 2] < 0x80:
            position += 3
        else:
            return None
        if delta < 0x40:
            if body[position] != delta << 1:
                return None
            position += 1
        else:
            if body[position] != delta << 1 & 0x7F | 0x80 or body[position + 1] != delta >> 6:
                return None
            position += 2
        size = body[position]
        if size & 0x81:  # no key, or a long one
            return None
        position += 1
        add_key(body[position : (position := position + (size >> 1))])
        size = body[position]
        if size < 0x80:
            position += 1
        elif (more := body[position + 1]) < 0x80:
            size, position = size & 0x7F | more << 7, position + 2
        else:
            size, position = size & 0x7F | (more & 0x7F) << 7 | body[position + 2] << 14, position + 3
        if size & 1:
            if size != 1:
                return None
            tombstones.append(delta)
        else:
            position += size >> 1
        if position != end or body[end]:
            return None
        position += 1
    return Scan(keys, range(records), [], tombstones) if position == len(body) else None


def record_starts(records: int, body: bytes) -> list[int]:
    """Where the records begin, in a batch that parses."""
    starts, position = [], 0
    for _ in range(records):
        starts.append(position)
        size = body[position]
        if size < 0x80:
            position += 1 + (size >> 1)
        elif (more := body[position + 1]) < 0x80:
            position += 2 + ((size & 0x7F | more << 7) >> 1)
        else:
            size, position = read_varint(body, position)
            position += size
    return starts


def _scan(header: BatchHeader, body: bytes, found: Scan) -> None:
    keys, _, starts, tombstones = found
    deltas: list[int] = found.deltas  # type: ignore[assignment]
    add_key, add_delta, add_start = keys.append, deltas.append, starts.append
    total, last_delta, before, position = len(body), header.last_offset_delta, -1, 0
    for _ in range(header.records):
        add_start(position)
        size = body[position]
        if size < 0x80:
            size, position = size >> 1 ^ -(size & 1), position + 1
        elif (more := body[position + 1]) < 0x80:
            size, position = (size & 0x7F | more << 7) >> 1 ^ -(size & 1), position + 2
        else:
            size, position = read_varint(body, position)
        end = position + size
        if not position < end <= total:
            raise CorruptBatch(f"record of {size} bytes with {total - position} bytes left")
        position += 1  # the record's attributes: none are defined
        if body[position] < 0x80:  # the timestamp
            position += 1
        elif body[position + 1] < 0x80:
            position += 2
        elif body[position + 2] < 0x80:
            position += 3
        else:
            timestamp, position = read_varint(body, position)
            _check_timestamp(header, timestamp)
        delta = body[position]
        if delta < 0x80:
            delta, position = delta >> 1 ^ -(delta & 1), position + 1
        elif (more := body[position + 1]) < 0x80:
            delta, position = (delta & 0x7F | more << 7) >> 1 ^ -(delta & 1), position + 2
        else:
            delta, position = read_varint(body, position)
        if not before < delta <= last_delta:
            raise CorruptBatch(f"offset delta {delta} after {before}, last offset delta {last_delta}")
        add_delta(delta)
        before = delta
        size = body[position]
        if size < 0x80:
            size, position = size >> 1 ^ -(size & 1), position + 1
        else:
            size, position = read_varint(body, position)
        if size < -1 or size > end - position:
            raise CorruptBatch(f"key of {size} bytes in a record with {end - position} bytes left")
        key = body[position : position + size] if size >= 0 else None
        add_key(key)
        position += size if size > 0 else 0
        size = body[position]
        if size == 1:  # -1: no value
            position += 1
            if key is not None:
                tombstones.append(delta)
        elif size < 0x80:
            position = position + 1 + (size >> 1) if not size & 1 else end
        else:
            size, position = read_varint(body, position)
            position = position + size if size >= 0 else end
        if position + 1 != end or body[position]:
            _check_headers(body, position, end)
        position = end
    if position != total:
        raise CorruptBatch(f"{total - position} bytes after the last record of the batch")


def _check_timestamp(header: BatchHeader, timestamp: int) -> None:
    fits = -TIMESTAMP_END <= header.base_timestamp + timestamp < TIMESTAMP_END
    if not fits and not header.attributes & LOG_APPEND_TIME_BIT:
        raise CorruptBatch(f"timestamp {header.base_timestamp} + {timestamp} does not fit in 64 bits")


def _check_headers(body: bytes, position: int, end: int) -> None:
    if position >= end:
        raise CorruptBatch("a field of the record is longer than the record")
    _, position = read_headers(body, position, end)
    if position != end:
        raise CorruptBatch(f"record ends {position - end:+} bytes from the end that its length says")
