"""Build record batches: for the wire client, for the partitions of coordinators, and for control batches.

Offsets and timestamps of records are stored as differences to the base offset and base timestamp of their batch, so a
batch is built at once from a sequence of records.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, Literal

from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.ports.disk import Buffer
from tailrace.records.compress import COMPRESSIONS, Compression, compress
from tailrace.records.crc import crc32c
from tailrace.records.header import (
    CHECKED_FROM,
    CONTROL_BIT,
    CRC_AT,
    LAYOUT,
    LOG_APPEND_TIME_BIT,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
)
from tailrace.records.record import RecordLike
from tailrace.records.varints import SMALL_VARINTS, varint

TimestampType = Literal["CreateTime", "LogAppendTime"]

_CRC: Final = Struct(">I")
_NULL: Final = varint(-1)
_NO_HEADERS: Final = varint(0)


def build_batch(
    records: Sequence[RecordLike],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    compression: Compression = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: TimestampType = "CreateTime",
) -> bytearray:
    """A batch of these records, with consecutive offsets from `base_offset` on, whatever offsets they had before."""
    if not records:
        raise ValueError("a batch needs at least one record")
    base_timestamp = records[0].timestamp
    return seal_batch(
        _encode(records, base_timestamp),
        count=len(records),
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        flags=(LOG_APPEND_TIME_BIT if timestamp_type == "LogAppendTime" else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0),
    )


def seal_batch(
    body: Buffer,
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    compression: Compression = "none",
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    flags: int = 0,
    last_offset_delta: int | None = None,
) -> bytearray:
    """A batch of `count` records that the caller has encoded already, as bulk writers do.

    `last_offset_delta` is that of a compacted batch, which has fewer records than offsets.
    """
    if compression != "none":
        body = compress(compression, body, level)
    batch = bytearray(BATCH_HEADER_BYTES)
    LAYOUT.pack_into(
        batch,
        0,
        base_offset,
        BATCH_HEADER_BYTES - PREFIX_BYTES + len(body),
        leader_epoch,
        2,
        0,
        COMPRESSIONS.index(compression) | flags,
        count - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    batch += body
    _CRC.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[CHECKED_FROM:]))
    return batch


def _encode(records: Sequence[RecordLike], base_timestamp: int) -> bytes:
    """Most varints here are small; to call a function for each takes as long as all the rest."""
    small, end = SMALL_VARINTS, len(SMALL_VARINTS)
    parts: list[bytes] = []
    for delta, record in enumerate(records):
        key, value, headers = record.key, record.value, record.headers
        later_ms = record.timestamp - base_timestamp
        key_size, value_size = len(key or b""), len(value or b"")
        one = b"\0%b%b%b%b%b%b%b" % (  # begins with the record's attributes, of which none are defined
            small[later_ms] if 0 <= later_ms < end else varint(later_ms),
            small[delta] if delta < end else varint(delta),
            _NULL if key is None else small[key_size] if key_size < end else varint(key_size),
            key or b"",
            _NULL if value is None else small[value_size] if value_size < end else varint(value_size),
            value or b"",
            _encode_headers(headers) if headers else _NO_HEADERS,
        )
        size = len(one)
        parts += (small[size] if size < end else varint(size), one)
    return b"".join(parts)


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        raw = name.encode("utf-8", "surrogateescape")
        parts += (varint(len(raw)), raw, _NULL if value is None else varint(len(value)), value or b"")
    return b"".join(parts)
