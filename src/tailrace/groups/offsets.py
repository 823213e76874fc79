"""Committed offsets: their values, their records, and when they expire.

An offset is kept while its group is subscribed to the topic, and for `offsets.retention.minutes` after that. In a
classic group the retention time begins when the last member leaves; in a group that never had members (offsets
committed by an assigning consumer) it begins at the last commit. A consumer group of KIP-848 does not record when its
last member left, so there too it begins at the last commit, as in Kafka.
"""

from collections.abc import Callable, Mapping
from dataclasses import field

from tailrace.groups.any_group import OffsetsGroup
from tailrace.groups.classic.states import State
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.records import Entry, OffsetCommitKey, OffsetCommitValue
from tailrace.model.faults import OffsetMetadataTooLarge
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName


@frozen
class Committed:
    """A committed offset of one partition."""

    offset: int  # the next one to read
    leader_epoch: int = -1
    metadata: str = ""
    committed_ms: int = -1
    expires_ms: int = -1  # -1: `offsets.retention.minutes` applies
    order: int = field(default=0, compare=False)  # position among all commits of the log; a later commit has a higher


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
    """The record of a commit; with None, the tombstone that deletes the offset."""
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


def check_metadata(metadata: str, max_size: int) -> None:
    """`offset.metadata.max.bytes` is named in bytes, but Kafka compares a Java string's length: UTF-16 code units."""
    if 2 * len(metadata) <= max_size:  # a character has one or two code units
        return
    size = len(metadata.encode("utf-16-le")) // 2
    if size > max_size:
        raise OffsetMetadataTooLarge(f"Offset metadata of {size} characters; offset.metadata.max.bytes is {max_size}.")


def expired(
    group: OffsetsGroup, offsets: Mapping[PartitionName, Committed], now_ms: int, retention_ms: int
) -> list[PartitionName]:
    """The partitions whose committed offsets have expired."""
    since = _unused_since(group)
    return [place for place, one in offsets.items() if _is_expired(one, since(place, one), now_ms, retention_ms)]


def _is_expired(one: Committed, unused_since_ms: int | None, now_ms: int, retention_ms: int) -> bool:
    if unused_since_ms is None:
        return False
    return now_ms >= (one.expires_ms if one.expires_ms >= 0 else unused_since_ms + retention_ms)


def _unused_since(group: OffsetsGroup) -> Callable[[PartitionName, Committed], int | None]:
    """A function that returns when an offset's retention time began; None: the offset is in use."""
    if isinstance(group, ConsumerGroup):
        topics = group.subscribed
        return lambda place, one: None if place.topic in topics else one.committed_ms
    if group.protocol_type is None:
        return lambda place, one: one.committed_ms
    if group.state is State.EMPTY:
        return lambda place, one: max(one.committed_ms, group.state_since_ms)
    subscribed = group.subscribed if group.state is State.STABLE else None
    if subscribed is None:
        return lambda place, one: None
    return lambda place, one: None if place.topic in subscribed else one.committed_ms
