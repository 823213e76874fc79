"""Say once more all that counts, so that what was said before need not be kept.

`__consumer_offsets` grows with every commit, and whoever takes over reads all of it. So its coordinator writes down now
and then what each group is and has read, as it is at that moment, in the same records as ever; then the log says all of
it from where that began, and can be cut there. Commits that come meanwhile are written later than what is said once
more, or are what is said.

Not everything can be said at any time: a classic group that is being shared out is written when that is done. Of two
commits the later counts, and so an offset that a transaction is about to replace must not be said after that. The log
is cut before the first record of a transaction that is open.
"""

from collections.abc import Iterator, Sequence

from tailrace.groups import offsets
from tailrace.groups.consumer import records as kept
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.shares import stored
from tailrace.groups.group import ClassicGroup
from tailrace.groups.kept import KeptGroups
from tailrace.groups.kinds import AnyGroup
from tailrace.groups.records import Entry
from tailrace.groups.states import State
from tailrace.groups.turn import GroupTurn
from tailrace.model.ids import PartitionName


def size(machine: KeptGroups) -> int:
    """How many records all that counts takes at most."""
    members = sum(len(group.members) for group in machine.groups.values())
    return 2 * len(machine.groups) + 4 * members + sum(len(places) for places in machine.offsets.values())


def restate(machine: KeptGroups, group_ids: Sequence[str], turn: GroupTurn) -> list[str]:
    """Say once more what some groups are; those of which that cannot be said now."""
    groups = [machine.groups[one] for one in group_ids if one in machine.groups]
    for group in groups:
        if not _is_under_way(group):
            turn.records += _entries(group)
    return [group.id for group in groups if _is_under_way(group)]


def restate_offsets(
    machine: KeptGroups, places: Sequence[tuple[str, PartitionName]], turn: GroupTurn
) -> list[tuple[str, PartitionName]]:
    """Say once more what was read of some partitions, as far as it is known still; those where that must wait."""
    pending = {group_id: machine.pending.places(group_id) for group_id, _ in places}
    left = []
    for group_id, place in places:
        known = machine.committed(group_id).get(place)
        if place in pending[group_id]:
            left.append((group_id, place))
        elif known is not None and not machine.is_gone(place, known):
            turn.records.append(offsets.entry(group_id, place, known))
    return left


def _is_under_way(group: AnyGroup) -> bool:
    return isinstance(group, ClassicGroup) and group.state not in (State.EMPTY, State.STABLE)


def _entries(group: AnyGroup) -> Iterator[Entry]:
    if isinstance(group, ConsumerGroup):
        yield from _of_consumers(group)
    elif group.protocol_type is not None:  # somebody was in it once
        yield group.entry({one.id: one.assignment for one in group.members.values()}, group.state_since_ms)


def _of_consumers(group: ConsumerGroup) -> Iterator[Entry]:
    value = kept.ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
    yield Entry(kept.ConsumerGroupMetadataKey(group=group.id), value)
    for expression, topics in group.expressions.items():
        key = kept.ConsumerGroupRegularExpressionKey(group=group.id, regular_expression=expression)
        yield Entry(key, kept.ConsumerGroupRegularExpressionValue(topics=topics, version=0, timestamp=0))
    for member in group.members.values():
        names = {"group": group.id, "member_id": member.id}
        target = stored(group.target.get(member.id, ()))
        yield Entry(kept.ConsumerGroupMemberMetadataKey(**names), member.profile)
        yield Entry(
            kept.ConsumerGroupTargetAssignmentMemberKey(**names),
            kept.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=target),
        )
        yield Entry(kept.ConsumerGroupCurrentMemberAssignmentKey(**names), member.standing.value())
    yield Entry(
        kept.ConsumerGroupTargetAssignmentMetadataKey(group=group.id),
        kept.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=group.assignment_epoch),
    )
