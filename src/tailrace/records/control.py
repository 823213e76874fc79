"""What a control batch says: that a leader begins, who votes from here on, or how a transaction ended.

A control batch has one record; its key holds a version and a type, its value begins with a version of its own. What we
do not know means nothing to us, and is None: other types, and later versions. A value that we do know, and that is not
what it says, makes the batch corrupt.
"""

import struct
from typing import Any

from tailrace.model.faults import CorruptBatch
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id
from tailrace.ports.disk import Buffer
from tailrace.records.build import (
    ABORT_TYPE,
    COMMIT_TYPE,
    CONTROL_KEY,
    CONTROL_KEY_VERSION,
    CONTROL_VERSION,
    LEADER_CHANGE_LAYOUT,
    LEADER_CHANGE_TYPE,
    MARKER_LAYOUT,
    QUORUM_VERSIONS_LAYOUT,
    VALUE_VERSION,
    VOTER_LAYOUT,
    VOTERS_TYPE,
)
from tailrace.records.header import read_header
from tailrace.records.opened import open_batch
from tailrace.records.varints import read_unsigned_varint

VoterIds = tuple[tuple[int, Id], ...]  # each a broker and the directory it votes with


@frozen
class LeaderChange:
    leader: int


@frozen
class VotersChange:
    voters: VoterIds  # all of them, from this batch on


@frozen
class Marker:
    """The producer of the batch has ended its transaction; which one, and in which epoch, its header says."""

    committed: bool  # else aborted
    coordinator_epoch: int


ControlRecord = LeaderChange | VotersChange | Marker


def read_control(batch: Buffer) -> ControlRecord | None:
    """What the one batch that `batch` is says; None when it is no control batch, or none that we know."""
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
        return VotersChange(voters=_voters(_Value(value))) if kind == VOTERS_TYPE else None
    except (struct.error, IndexError) as error:
        raise CorruptBatch(f"a control record of type {kind} is cut short or garbled: {error}") from None


def _voters(value: "_Value") -> VoterIds:
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
        raise CorruptBatch(f"{len(voters)} voters in a control record, and {value.left} bytes after them")
    return tuple(voters)


class _Value:
    """The value of a control record, read from front to back; past its end is an IndexError or `struct.error`."""

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
        """The length of a compact array or text that cannot be null."""
        count = self._unsigned() - 1
        if not 0 <= count <= self.left:
            raise IndexError(f"a length of {count} with {self.left} bytes left")
        return count

    def skip_endpoint(self) -> None:
        """A listener's name, a host, a port of two bytes."""
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
            raise IndexError(f"{size} bytes wanted, {self.left} are left")
        self._at += size
