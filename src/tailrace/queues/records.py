"""The records of `__share_group_state`, in Kafka's format, so that Kafka's tools can read them.

They store what a share group has done with the records of one partition. A snapshot is the whole state, an update
changes the state of the last snapshot. A key begins with its type and a value with its version, two bytes each. A key
of a snapshot without a value is a tombstone: it deletes the state.

`not_before` and `metadata_end` are fields of Tailrace, in tags that other readers skip.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from tailrace.cluster.features import record_version
from tailrace.model.ids import Id
from tailrace.queues.state import DeliveryState
from tailrace.records.record import NewRecord, Record
from tailrace.wire.compile import decode, encode
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import Int8, Int16, Int32, Int64, declaration, record, wire
from tailrace.wire.schema import struct as part
from tailrace.wire.stored import NUMBER, UnknownRecord, check_version, leading_number

STATES: Final = frozenset(DeliveryState)


@record(type=0, versions="0-0", flexible="none")
class ShareSnapshotKey:
    """Names a partition of a share group."""

    group: str
    topic_id: Id
    partition: Int32


@part
class StateBatch:
    """A range of offsets that have the same state."""

    first_offset: Int64
    last_offset: Int64  # inclusive
    delivery_state: Int8  # 0: available, 2: acknowledged, 4: archived
    delivery_count: Int16
    not_before: Int64 = wire(tag=10_000, default=-1)  # not delivered before this time, ms since the epoch; -1: none


@record(type=0, versions="0-0", flexible="0+")
class ShareSnapshotValue:
    """The whole state. Offsets from the start offset on that no batch contains are available."""

    snapshot_epoch: Int32  # one more with each snapshot
    state_epoch: Int32  # of the group when the state was initialized; older requests are fenced
    leader_epoch: Int32  # of the leader that wrote the state; older leaders are fenced
    start_offset: Int64  # all records before it are finished
    delivery_complete_count: Int32 = wire(tag=0, default=-1)  # finished offsets from the start offset on; -1: unknown
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...]
    metadata_end: Int64 = wire(tag=10_000, default=-1)  # as in `queues.state.ShareState`


@record(type=1, versions="1-1", flexible="none")
class ShareUpdateKey:
    """Names a partition of a share group."""

    group: str
    topic_id: Id
    partition: Int32


@record(type=1, versions="0-0", flexible="0+")
class ShareUpdateValue:
    """What has changed since the snapshot with the same epoch and the updates that followed it."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64  # -1: unchanged
    delivery_complete_count: Int32 = wire(tag=0, default=-1)  # as in a snapshot
    state_batches: tuple[StateBatch, ...]


ShareStateKey = ShareSnapshotKey | ShareUpdateKey
ShareStateValue = ShareSnapshotValue | ShareUpdateValue


class Entry(NamedTuple):
    """One record; without a value it is a tombstone."""

    key: ShareStateKey
    value: ShareStateValue | None


KINDS: Final[Mapping[int, tuple[type[ShareStateKey], type[ShareStateValue]]]] = MappingProxyType(
    {0: (ShareSnapshotKey, ShareSnapshotValue), 1: (ShareUpdateKey, ShareUpdateValue)}
)


def encode_entry(entry: Entry, level: int, timestamp_ms: int) -> NewRecord:
    """The record of an entry at a level of metadata.version."""
    key_class: type[ShareStateKey] = type(entry.key)
    key_type = declaration(key_class).number
    version = record_version(level, KINDS[key_type][1].__name__)
    value = None if entry.value is None else NUMBER.pack(version) + encode(entry.value, version)
    return NewRecord(key=NUMBER.pack(key_type) + encode(entry.key, key_type), value=value, timestamp=timestamp_ms)


def decode_entry(stored: Record) -> Entry:
    key_type = leading_number(stored.key or b"")
    if key_type not in KINDS:
        version = -1 if stored.value is None else leading_number(stored.value)
        raise UnknownRecord(f"key type {key_type}", version, f"key types {', '.join(map(str, KINDS))}")
    key_class, value_class = KINDS[key_type]
    key, _ = decode(key_class, key_type, stored.key or b"", NUMBER.size)
    if stored.value is None:
        return Entry(key, None)
    version = leading_number(stored.value)
    check_version(value_class, value_class.__name__, version)
    value, _ = decode(value_class, version, stored.value, NUMBER.size)
    unknown = [one.delivery_state for one in value.state_batches if one.delivery_state not in STATES]
    if unknown:
        raise WireError(f"record at offset {stored.offset} has unknown delivery state {unknown[0]}")
    return Entry(key, value)
