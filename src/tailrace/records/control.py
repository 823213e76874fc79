"""Control batches: a leader change, a voter set, or the end of a transaction.

A control batch has one record. Its key holds a version and a type, and its value begins with a version of its own.
Records of unknown types and versions are ignored: they read as None. A value of a known type and version that cannot
be decoded makes the batch corrupt.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

from tailrace.model.faults import CorruptBatch
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id
from tailrace.ports.disk import Buffer
from tailrace.records.build import build_batch
from tailrace.records.header import read_header
from tailrace.records.opened import open_batch
from tailrace.records.record import NewRecord
from tailrace.records.varints import read_unsigned_varint, unsigned_varint

CONTROL_KEY: Final = struct.Struct(">hh")  # version and type of a control record
CONTROL_KEY_VERSION: Final = 0
ABORT_TYPE: Final = 0
COMMIT_TYPE: Final = 1
LEADER_CHANGE_TYPE: Final = 2
VOTERS_TYPE: Final = 6
CONTROL_VERSION: Final = 0  # of each value
VALUE_VERSION: Final = struct.Struct(">h")
MARKER_LAYOUT: Final = struct.Struct(">hi")  # version and coordinator epoch
LEADER_CHANGE_LAYOUT: Final = struct.Struct(">hi")  # version and leader
VOTER_LAYOUT: Final = struct.Struct(">i16s")  # broker id and directory id
QUORUM_VERSIONS_LAYOUT: Final = struct.Struct(">hh")  # lowest and highest version of KRaft that a voter supports
_VOTER: Final = struct.Struct(">ib")  # broker id, and zero tagged fields
_NO_ENDPOINTS: Final = b"\1"

VoterIds = tuple[tuple[int, Id], ...]  # broker id and directory id of each voter


@frozen
class LeaderChange:
    leader: int


@frozen
class VotersChange:
    voters: VoterIds  # the whole voter set from this batch on


@frozen
class Marker:
    """The end of a transaction. The producer id and epoch are in the batch header."""

    committed: bool  # False: aborted
    coordinator_epoch: int


ControlRecord = LeaderChange | VotersChange | Marker


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
    value = LEADER_CHANGE_LAYOUT.pack(CONTROL_VERSION, leader) + _voter_ids(voters) + _voter_ids(granting) + b"\0"
    return _control_batch(LEADER_CHANGE_TYPE, value, base_offset, leader_epoch, timestamp)


def voters_batch(*, voters: Sequence[tuple[int, Id]], base_offset: int, leader_epoch: int, timestamp: int) -> bytearray:
    """The control batch with the voter set from here on, by broker and directory: Kafka's VotersRecord (KIP-853).

    It has no endpoints of the voters: those are in the metadata, and change independently of the voter set.
    """
    value = VALUE_VERSION.pack(CONTROL_VERSION) + unsigned_varint(len(voters) + 1)
    for voter, directory in voters:
        value += VOTER_LAYOUT.pack(voter, directory) + _NO_ENDPOINTS + QUORUM_VERSIONS_LAYOUT.pack(0, 1) + b"\0\0"
    return _control_batch(VOTERS_TYPE, value + b"\0", base_offset, leader_epoch, timestamp)


def marker_batch(
    *, committed: bool, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """The control batch that ends a transaction on a partition: Kafka's EndTransactionMarker."""
    key = CONTROL_KEY.pack(CONTROL_KEY_VERSION, COMMIT_TYPE if committed else ABORT_TYPE)
    record = NewRecord(value=MARKER_LAYOUT.pack(CONTROL_VERSION, coordinator_epoch), key=key, timestamp=timestamp)
    return build_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
    )


def _control_batch(type: int, value: bytes, base_offset: int, leader_epoch: int, timestamp: int) -> bytearray:
    key = CONTROL_KEY.pack(CONTROL_KEY_VERSION, type)
    record = NewRecord(value=value, key=key, timestamp=timestamp)
    return build_batch([record], base_offset=base_offset, leader_epoch=leader_epoch, control=True)


def _voter_ids(ids: Sequence[int]) -> bytes:
    return unsigned_varint(len(ids) + 1) + b"".join(_VOTER.pack(one, 0) for one in ids)


def read_control(batch: Buffer) -> ControlRecord | None:
    """The control record of this batch; None: it is not a control batch, or its type or version is unknown."""
    if not read_header(batch).is_control:
        return None
    records = open_batch(batch)
    key = records[0].key if records else None
    if key is None or len(key) < CONTROL_KEY.size:
        return None
    key_version, kind = CONTROL_KEY.unpack_from(key)
    value = records[0].value or b""
    if key_version != CONTROL_KEY_VERSION or value[: VALUE_VERSION.size] != VALUE_VERSION.pack(CONTROL_VERSION):
        return None
    try:
        if kind == LEADER_CHANGE_TYPE:
            return LeaderChange(leader=LEADER_CHANGE_LAYOUT.unpack_from(value)[1])
        if kind in (ABORT_TYPE, COMMIT_TYPE):
            return Marker(committed=kind == COMMIT_TYPE, coordinator_epoch=MARKER_LAYOUT.unpack_from(value)[1])
        return VotersChange(voters=_voters(_ValueReader(value))) if kind == VOTERS_TYPE else None
    except (struct.error, IndexError) as error:
        raise CorruptBatch(f"control record of type {kind} is truncated or garbled: {error}") from None


def _voters(value: "_ValueReader") -> VoterIds:
    value.take(VALUE_VERSION)
    voters = []
    for _ in range(value.count()):
        voter, directory = value.take(VOTER_LAYOUT)
        for _ in range(value.count()):
            value.skip_endpoint()
        value.take(QUORUM_VERSIONS_LAYOUT)
        value.skip_tags()
        value.skip_tags()
        voters.append((voter, Id(directory)))
    value.skip_tags()
    if not voters or value.left:
        raise CorruptBatch(f"control record with {len(voters)} voters and {value.left} bytes after them")
    return tuple(voters)


class _ValueReader:
    """Reads the value of a control record from front to back; IndexError or `struct.error` past its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        fields = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return fields

    def count(self) -> int:
        """The length of a compact array or string that cannot be null."""
        count = self._unsigned() - 1
        if not 0 <= count <= self.left:
            raise IndexError(f"length {count} with {self.left} bytes left")
        return count

    def skip_endpoint(self) -> None:
        """A listener name, a host, and a port of two bytes."""
        for _ in range(2):
            self._skip(self.count())
        self._skip(2)
        self.skip_tags()

    def skip_tags(self) -> None:
        for _ in range(self._unsigned()):
            self._unsigned()
            self._skip(self._unsigned())

    def _unsigned(self) -> int:
        number, self._at = read_unsigned_varint(self._data, self._at)
        return number

    def _skip(self, size: int) -> None:
        if size > self.left:
            raise IndexError(f"{size} bytes expected, {self.left} left")
        self._at += size
