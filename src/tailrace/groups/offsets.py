"""How far groups have read: offsets with a note and the leader's epoch, until they expire.

An offset is kept while its group reads the topic. It is forgotten `offsets.retention.minutes` after that: after the
last member went, or, in a group that only commits and never had members, after the last commit. A consumer group of
KIP-848 does not know when its last member went: there the last commit counts, as with Kafka.
"""

from collections.abc import Callable, Mapping
from dataclasses import field

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.kinds import AnyGroup
from tailrace.groups.records import Entry, OffsetCommitKey, OffsetCommitValue
from tailrace.groups.states import State
from tailrace.model.faults import OffsetMetadataTooLarge
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName


@frozen
class Committed:
    """The next offset to read."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_ms: int = -1
    expires_ms: int = -1  # -1: as the broker says
    order: int = field(default=0, compare=False)  # how late it was written, of all in one log


def committed_of(value: OffsetCommitValue, order: int = 0) -> Committed:
    return Committed(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        committed_ms=value.commit_timestamp,
        expires_ms=value.expire_timestamp,
        order=order,
    )


def entry(group_id: str, place: PartitionName, committed: Committed | None) -> Entry:
    """For the log; None: it is forgotten."""
    key = OffsetCommitKey(group=group_id, topic=place.topic, partition=place.partition)
    if committed is None:
        return Entry(key, None)
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.committed_ms,
        expire_timestamp=committed.expires_ms,
    )
    return Entry(key, value)


def check_metadata(metadata: str, most: int) -> None:
    """Kafka's setting says bytes, and what it compares is the length of a string in Java: units of UTF-16."""
    size = len(metadata.encode("utf-16-le")) // 2
    if size > most:
        raise OffsetMetadataTooLarge(f"a note of {size} characters; offset.metadata.max.bytes is {most}")


def expired(
    group: AnyGroup, offsets: Mapping[PartitionName, Committed], now_ms: int, retention_ms: int
) -> list[PartitionName]:
    """Which offsets of a group need not be kept any more."""
    since = _unused_since(group)
    return [place for place, one in offsets.items() if _is_over(one, since(place, one), now_ms, retention_ms)]


def _is_over(one: Committed, since_ms: int | None, now_ms: int, retention_ms: int) -> bool:
    if since_ms is None:
        return False
    return now_ms >= (one.expires_ms if one.expires_ms >= 0 else since_ms + retention_ms)


def _unused_since(group: AnyGroup) -> Callable[[PartitionName, Committed], int | None]:
    """Since when nobody uses an offset; None: somebody does."""
    if isinstance(group, ConsumerGroup):
        read = group.subscribed
        return lambda place, one: None if place.topic in read else one.committed_ms
    if group.protocol_type is None:
        return lambda place, one: one.committed_ms
    if group.state is State.EMPTY:
        return lambda place, one: max(one.committed_ms, group.state_since_ms)
    subscribed = group.subscribed if group.state is State.STABLE else None
    if subscribed is None:
        return lambda place, one: None
    return lambda place, one: None if place.topic in subscribed else one.committed_ms
