"""The records of `__consumer_offsets`, in Kafka's format, so that Kafka's tools can read them.

A key begins with its type and a value with its version, two bytes each; the declared fields follow. A record without a
value is a tombstone: it deletes what the key names. The values declared here are written in version 3
(`cluster/features.py` says at which metadata.version), which all current Kafka releases can read, and are read in every
version. Those of KIP-848 are in `consumer/records.py`, those of KIP-932 in `share/records.py`.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

from tailrace.cluster.features import record_version
from tailrace.groups.consumer.records import ConsumerKey, ConsumerValue
from tailrace.groups.share.records import ShareKey, ShareValue
from tailrace.model.ids import NO_ID, Id
from tailrace.records.record import NewRecord, Record
from tailrace.wire.compile import decode, encode_into
from tailrace.wire.schema import Int32, Int64, declaration, record, wire
from tailrace.wire.schema import struct as part
from tailrace.wire.stored import NUMBER, UnknownRecord, check_version, leading_number


@record(type=1, versions="0-1", flexible="none")
class OffsetCommitKey:
    """The committed offset of a group for a partition. Key types 0 and 1 have the same fields."""

    group: str
    topic: str
    partition: Int32


@record(type=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """A committed offset."""

    offset: Int64  # the next one to read
    leader_epoch: Int32 = wire(since=3, default=-1, ignorable=True)
    metadata: str
    commit_timestamp: Int64
    expire_timestamp: Int64 = wire(since=1, until=1, default=-1)  # -1: `offsets.retention.minutes` applies
    topic_id: Id = wire(since=4, tag=0, default=NO_ID)


@record(type=2, versions="2-2", flexible="none")
class GroupMetadataKey:
    """A classic group."""

    group: str


@part
class StoredMember:
    """A member; `subscription` is its metadata for the generation's protocol."""

    member_id: str
    group_instance_id: str | None = wire(since=3, nullable="3+", default=None, ignorable=True)
    client_id: str
    client_host: str
    rebalance_timeout: Int32 = wire(since=1, default=-1, ignorable=True)
    session_timeout: Int32
    subscription: bytes
    assignment: bytes


@record(type=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A generation whose assignment is complete, or a group without members."""

    protocol_type: str
    generation: Int32
    protocol: str | None = wire(nullable="0+")
    leader: str | None = wire(nullable="0+")
    current_state_timestamp: Int64 = wire(since=2, default=-1, ignorable=True)
    members: tuple[StoredMember, ...]


Key = OffsetCommitKey | GroupMetadataKey | ConsumerKey | ShareKey
Value = OffsetCommitValue | GroupMetadataValue | ConsumerValue | ShareValue


class Entry(NamedTuple):
    """One record; without a value it is a tombstone."""

    key: Key
    value: Value | None


KINDS: Final[Mapping[int, tuple[type[Key], type[Value]]]] = MappingProxyType(
    {
        0: (OffsetCommitKey, OffsetCommitValue),
        1: (OffsetCommitKey, OffsetCommitValue),
        2: (GroupMetadataKey, GroupMetadataValue),
    }
    | {
        declaration(key).number: (key, value)
        for keys, values in ((ConsumerKey, ConsumerValue), (ShareKey, ShareValue))
        for key, value in zip(get_args(keys), get_args(values), strict=True)
    }
)


def encode_entry(entry: Entry, level: int, timestamp_ms: int) -> NewRecord:
    """The record of an entry at a level of metadata.version."""
    key_class: type = type(entry.key)
    key_type, version = _numbers(key_class, level)
    value = entry.value
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != -1:
        version = 1  # the only version with an expiry time
    return NewRecord(
        None if value is None else _numbered(version, value), _numbered(key_type, entry.key), timestamp=timestamp_ms
    )


@cache
def _numbers(key_class: type, level: int) -> tuple[int, int]:
    """The type of a key, and the version of its value at a level of metadata.version."""
    key_type = declaration(key_class).number
    return key_type, record_version(level, KINDS[key_type][1].__name__)


def _numbered(number: int, part: Key | Value) -> bytes:
    out = bytearray(NUMBER.pack(number))
    encode_into(out, part, number)
    return bytes(out)


def decode_entry(stored: Record) -> Entry:
    key_type = leading_number(stored.key or b"")
    if key_type not in KINDS:
        raise UnknownRecord(f"key type {key_type}", _version_if_any(stored), f"key types {', '.join(map(str, KINDS))}")
    key_class, value_class = KINDS[key_type]
    key, _ = decode(key_class, key_type, stored.key or b"", NUMBER.size)
    if stored.value is None:
        return Entry(key, None)
    version = leading_number(stored.value)
    check_version(value_class, f"key type {key_type} ({value_class.__name__})", version)
    value, _ = decode(value_class, version, stored.value, NUMBER.size)
    return Entry(key, value)


def _version_if_any(stored: Record) -> int:
    """The version of a record's value; -1 for a tombstone, which has none."""
    return -1 if stored.value is None else leading_number(stored.value)
