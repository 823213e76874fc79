"""Make record batches: for the wire client, for coordinators' own partitions, for leaders' control batches.

Offsets and timestamps inside a batch are differences to its base; both bases are known only with the whole batch,
so a batch is built in one go from a sequence of records.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, Literal

from tailrace.model.ids import Id
from tailrace.model.limits import batch_header_bytes
from tailrace.ports.disk import Buffer
from tailrace.records.compress import Compression, compress, compressions
from tailrace.records.crc import crc32c
from tailrace.records.header import (
    checked_from,
    control_bit,
    crc_at,
    layout,
    log_append_time_bit,
    prefix_bytes,
    transactional_bit,
)
from tailrace.records.record import NewRecord, RecordLike
from tailrace.records.varints import unsigned_varint, varint

TimestampType = Literal["CreateTime", "LogAppendTime"]

_crc: Final = Struct(">I")
_null: Final = varint(-1)
_no_headers: Final = varint(0)

control_key: Final = Struct(">hh")  # version and type of a control record
control_key_version: Final = 0
abort_type: Final = 0
commit_type: Final = 1
leader_change_type: Final = 2
voters_type: Final = 6
control_version: Final = 0  # of the values that follow
value_version: Final = Struct(">h")
marker_layout: Final = Struct(">hi")  # version and the coordinator's epoch
leader_change_layout: Final = Struct(">hi")  # version and leader
voter_layout: Final = Struct(">i16s")  # its id and directory
quorum_versions_layout: Final = Struct(">hh")  # the lowest and the highest that a voter understands
_voter: Final = Struct(">ib")  # its id, and that no tagged fields follow
_no_endpoints: Final = b"\1"


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
        flags=(log_append_time_bit if timestamp_type == "LogAppendTime" else 0)
        | (transactional_bit if transactional else 0)
        | (control_bit if control else 0),
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
    batch = bytearray(batch_header_bytes)
    layout.pack_into(
        batch,
        0,
        base_offset,
        batch_header_bytes - prefix_bytes + len(body),
        leader_epoch,
        2,
        0,
        compressions.index(compression) | flags,
        count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    batch += body
    _crc.pack_into(batch, crc_at, crc32c(memoryview(batch)[checked_from:]))
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
    value = leader_change_layout.pack(control_version, leader) + _voters(voters) + _voters(granting) + b"\0"
    return _control_batch(leader_change_type, value, base_offset, leader_epoch, timestamp)


def voters_batch(*, voters: Sequence[tuple[int, Id]], base_offset: int, leader_epoch: int, timestamp: int) -> bytearray:
    """The control batch that says who votes from here on, by broker and directory: Kafka's VotersRecord (KIP-853).

    Where voters are reached is not in it: that is for the metadata to say, and changes without a vote."""
    value = value_version.pack(control_version) + unsigned_varint(len(voters) + 1)
    for voter, directory in voters:
        value += voter_layout.pack(voter, directory) + _no_endpoints + quorum_versions_layout.pack(0, 1) + b"\0\0"
    return _control_batch(voters_type, value + b"\0", base_offset, leader_epoch, timestamp)


def marker_batch(
    *, committed: bool, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """The control batch that ends a producer's transaction on a partition: Kafka's EndTransactionMarker."""
    key = control_key.pack(control_key_version, commit_type if committed else abort_type)
    record = NewRecord(value=marker_layout.pack(control_version, coordinator_epoch), key=key, timestamp=timestamp)
    return build_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
    )


def _control_batch(type: int, value: bytes, base_offset: int, leader_epoch: int, timestamp: int) -> bytearray:
    key = control_key.pack(control_key_version, type)
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
                _null if key is None else varint(len(key)),
                key or b"",
                _null if value is None else varint(len(value)),
                value or b"",
                _encode_headers(headers) if headers else _no_headers,
            )
        )
        body += varint(len(one))
        body += one
    return body


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        raw = name.encode("utf-8", "surrogateescape")
        parts += (varint(len(raw)), raw, _null if value is None else varint(len(value)), value or b"")
    return b"".join(parts)


def _voters(ids: Sequence[int]) -> bytes:
    return unsigned_varint(len(ids) + 1) + b"".join(_voter.pack(one, 0) for one in ids)
