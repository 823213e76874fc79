"""The records of `__share_group_state`, in Kafka's format, so that Kafka's tools can read them.

They store what a share group has done with the records of one partition. A snapshot is the whole state, an update
changes the state of the last snapshot. A key's version is its type.

`not_before` is a field of Tailrace, in a tag that other readers skip.
"""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int8, Int16, Int32, Int64, record, wire
from tailrace.wire.schema import struct as part


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
