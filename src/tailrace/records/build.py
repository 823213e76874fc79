"""Make record batches: for the wire client, for coordinators' own partitions, for leaders' control batches.

Offsets and timestamps inside a batch are differences to its base; both bases are known only with the whole batch,
so a batch is built in one go from a sequence of records.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, Literal

from tailrace.model.ids import Id
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
from tailrace.records.record import NewRecord, RecordLike
from tailrace.records.varints import unsigned_varint, varint

TimestampType = Literal["CreateTime", "LogAppendTime"]

_CRC: Final = Struct(">I")
_NULL: Final = varint(-1)
_NO_HEADERS: Final = varint(0)

CONTROL_KEY: Final = Struct(">hh")  # version and type of a control record
CONTROL_KEY_VERSION: Final = 0
ABORT_TYPE: Final = 0
COMMIT_TYPE: Final = 1
LEADER_CHANGE_TYPE: Final = 2
VOTERS_TYPE: Final = 6
CONTROL_VERSION: Final = 0  # of the values that follow
VALUE_VERSION: Final = Struct(">h")
MARKER_LAYOUT: Final = Struct(">hi")  # version and the coordinator's epoch
LEADER_CHANGE_LAYOUT: Final = Struct(">hi")  # version and leader
VOTER_LAYOUT: Final = Struct(">i16s")  # its id and directory
QUORUM_VERSIONS_LAYOUT: Final = Struct(">hh")  # the lowest and the highest that a voter understands
_VOTER: Final = Struct(">ib")  # its id, and that no tagged fields follow
_NO_ENDPOINTS: Final = b"\1"


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
    """One batch of these records. Their offsets count up from `base_offset`, whatever offsets they had before."""
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
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    flags: int = 0,
) -> bytearray:
    """One batch of `count` records that are encoded already, by whoever does that in bulk."""
    if compression != "none":
        body = compress(compression, body)
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
        count - 1,
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


def leader_change_batch(
    *,
    leader: int,
    voters: Sequence[int],
    granting: Sequence[int],
    base_offset: int,
    leader_epoch: int,
    timestamp: int,
) -> bytearray:
    """The control batch of a new leader: Kafka's LeaderChangeMessage, which every Kafka client skips."""
    value = LEADER_CHANGE_LAYOUT.pack(CONTROL_VERSION, leader) + _voters(voters) + _voters(granting) + b"\0"
    return _control_batch(LEADER_CHANGE_TYPE, value, base_offset, leader_epoch, timestamp)


def voters_batch(*, voters: Sequence[tuple[int, Id]], base_offset: int, leader_epoch: int, timestamp: int) -> bytearray:
    """The control batch that says who votes from here on, by broker and directory: Kafka's VotersRecord (KIP-853).

    Where voters are reached is not in it: that is for the metadata to say, and changes without a vote."""
    value = VALUE_VERSION.pack(CONTROL_VERSION) + unsigned_varint(len(voters) + 1)
    for voter, directory in voters:
        value += VOTER_LAYOUT.pack(voter, directory) + _NO_ENDPOINTS + QUORUM_VERSIONS_LAYOUT.pack(0, 1) + b"\0\0"
    return _control_batch(VOTERS_TYPE, value + b"\0", base_offset, leader_epoch, timestamp)


def marker_batch(
    *, committed: bool, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """The control batch that ends a producer's transaction on a partition: Kafka's EndTransactionMarker."""
    key = CONTROL_KEY.pack(CONTROL_KEY_VERSION, COMMIT_TYPE if committed else ABORT_TYPE)
    record = NewRecord(value=MARKER_LAYOUT.pack(CONTROL_VERSION, coordinator_epoch), key=key, timestamp=timestamp)
    return build_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
    )


def _control_batch(type: int, value: bytes, base_offset: int, leader_epoch: int, timestamp: int) -> bytearray:
    key = CONTROL_KEY.pack(CONTROL_KEY_VERSION, type)
    record = NewRecord(value=value, key=key, timestamp=timestamp)
    return build_batch([record], base_offset=base_offset, leader_epoch=leader_epoch, control=True)


def _encode(records: Sequence[RecordLike], base_timestamp: int) -> bytearray | bytes:
    body = bytearray()
    for delta, record in enumerate(records):
        key, value, headers = record.key, record.value, record.headers
        one = b"".join(
            (
                b"\0",  # attributes of a record: none are defined
                varint(record.timestamp - base_timestamp),
                varint(delta),
                _NULL if key is None else varint(len(key)),
                key or b"",
                _NULL if value is None else varint(len(value)),
                value or b"",
                _encode_headers(headers) if headers else _NO_HEADERS,
            )
        )
        body += varint(len(one))
        body += one
    return body


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        raw = name.encode("utf-8", "surrogateescape")
        parts += (varint(len(raw)), raw, _NULL if value is None else varint(len(value)), value or b"")
    return b"".join(parts)


def _voters(ids: Sequence[int]) -> bytes:
    return unsigned_varint(len(ids) + 1) + b"".join(_VOTER.pack(one, 0) for one in ids)
