"""Append the live state of groups again, so that the log before it can be deleted.

`__consumer_offsets` grows with every commit, and a new coordinator has to read all of it. There is no log compaction,
so from time to time the coordinator appends its current state, group by group, as ordinary records. Then everything
that counts is in the log from where this began, and the log start offset can move there. A commit that arrives
meanwhile is either part of what is appended or comes after it.

Some state cannot be appended at any time. A classic group in a rebalance is written once that has finished. Of two
commits for a partition the later one counts, so an offset that an open transaction is about to replace must not be
appended after the transaction's own record. The log start never passes the first record of an open transaction.
"""

from collections.abc import Iterator, Sequence

from tailrace.groups import offsets
from tailrace.groups.any_group import AnyGroup
from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.states import State
from tailrace.groups.consumer import records
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.partition_sets import to_stored
from tailrace.groups.records import Entry
from tailrace.groups.replayed_groups import ReplayedGroups
from tailrace.groups.share import records as share_records
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.turn import GroupTurn
from tailrace.model.ids import PartitionName


def live_records_max(machine: ReplayedGroups) -> int:
    """An upper bound on the number of records that the live state takes."""
    members = sum(len(group.members) for group in machine.groups.values())
    groups = sum(3 if isinstance(group, ShareGroup) else 2 for group in machine.groups.values())
    return groups + 4 * members + sum(len(places) for places in machine.offsets.values())


def rewrite_groups(machine: ReplayedGroups, group_ids: Sequence[str], turn: GroupTurn) -> list[str]:
    """Append the state of these groups, without offsets; returns those that have to wait for a rebalance to finish."""
    groups = [machine.groups[one] for one in group_ids if one in machine.groups]
    for group in groups:
        if not _is_rebalancing(group):
            turn.records += _group_records(group)
    return [group.id for group in groups if _is_rebalancing(group)]


def rewrite_offsets(
    machine: ReplayedGroups, places: Sequence[tuple[str, PartitionName]], turn: GroupTurn
) -> list[tuple[str, PartitionName]]:
    """Append the committed offsets of these groups and partitions, as far as they still exist; returns those that have
    to wait for a transaction to end."""
    pending = {group_id: machine.pending.places(group_id) for group_id, _ in places}
    waiting = []
    for group_id, place in places:
        known = machine.committed(group_id).get(place)
        if place in pending[group_id]:
            waiting.append((group_id, place))
        elif known is not None and not machine.is_of_deleted_topic(place, known):
            turn.records.append(offsets.entry(group_id, place, known))
    return waiting


def _is_rebalancing(group: AnyGroup) -> bool:
    return isinstance(group, ClassicGroup) and group.state not in (State.EMPTY, State.STABLE)


def _group_records(group: AnyGroup) -> Iterator[Entry]:
    if isinstance(group, ConsumerGroup):
        yield from _consumer_group_records(group)
    elif isinstance(group, ShareGroup):
        yield from _share_group_records(group)
    elif group.protocol_type is not None:  # it has had members
        yield group.entry({one.id: one.assignment for one in group.members.values()}, group.state_since_ms)


def _consumer_group_records(group: ConsumerGroup) -> Iterator[Entry]:
    value = records.ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
    yield Entry(records.ConsumerGroupMetadataKey(group=group.id), value)
    for expression, topics in group.expressions.items():
        key = records.ConsumerGroupRegularExpressionKey(group=group.id, regular_expression=expression)
        yield Entry(key, records.ConsumerGroupRegularExpressionValue(topics=topics, version=0, timestamp=0))
    for member in group.members.values():
        names = {"group": group.id, "member_id": member.id}
        target = to_stored(group.target.get(member.id, ()))
        yield Entry(records.ConsumerGroupMemberMetadataKey(**names), member.profile)
        yield Entry(
            records.ConsumerGroupTargetAssignmentMemberKey(**names),
            records.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=target),
        )
        yield Entry(records.ConsumerGroupCurrentMemberAssignmentKey(**names), member.current.value())
    yield Entry(
        records.ConsumerGroupTargetAssignmentMetadataKey(group=group.id),
        records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=group.assignment_epoch),
    )


def _share_group_records(group: ShareGroup) -> Iterator[Entry]:
    value = share_records.ShareGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
    yield Entry(share_records.ShareGroupMetadataKey(group=group.id), value)
    yield Entry(share_records.ShareGroupStatePartitionMetadataKey(group=group.id), group.partitions.value())
    for member in group.members.values():
        names = {"group": group.id, "member_id": member.id}
        target = to_stored(group.target.get(member.id, ()))
        yield Entry(share_records.ShareGroupMemberMetadataKey(**names), member.profile)
        yield Entry(
            share_records.ShareGroupTargetAssignmentMemberKey(**names),
            share_records.ShareGroupTargetAssignmentMemberValue(topic_partitions=target),
        )
        yield Entry(share_records.ShareGroupCurrentMemberAssignmentKey(**names), member.current.value())
    yield Entry(
        share_records.ShareGroupTargetAssignmentMetadataKey(group=group.id),
        share_records.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=group.assignment_epoch),
    )
