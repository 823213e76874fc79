"""Say once more all that counts, so that what was said before need not be kept.

`__consumer_offsets` grows with every commit, and whoever takes over reads all of it. So its coordinator writes down now
and then what each group is and has read, as it is at that moment, in the same records as ever; then the log says all of
it from where that began, and can be cut there. Commits that come meanwhile are written later than what is said once
more, or are what is said.

Not everything can be said at any time: a classic group that is being shared out is written when that is done, and what
a transaction has committed counts where it was written. Then it is left for another time.
"""

from collections.abc import Iterator, Sequence

from tailrace.groups import offsets
from tailrace.groups.consumer import records as kept
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.shares import stored
from tailrace.groups.group import ClassicGroup
from tailrace.groups.kept import KeptGroups
from tailrace.groups.kinds import AnyGroup
from tailrace.groups.offsets import Place
from tailrace.groups.records import Entry
from tailrace.groups.states import State
from tailrace.groups.turn import Turn


def size(machine: KeptGroups) -> int:
    """How many records all that counts takes at most."""
    members = sum(len(group.members) for group in machine.groups.values())
    return 2 * len(machine.groups) + 4 * members + sum(len(places) for places in machine.offsets.values())


def restate(machine: KeptGroups, group_ids: Sequence[str], turn: Turn) -> bool:
    """Say once more what some groups are; whether that can be said now."""
    groups = [machine.groups[one] for one in group_ids if one in machine.groups]
    if any(_is_under_way(group) or machine.pending.places(group.id) for group in groups):
        return False
    for group in groups:
        turn.records += _entries(group)
    return True


def restate_offsets(machine: KeptGroups, places: Sequence[tuple[str, Place]], turn: Turn) -> bool:
    """Say once more what was read of some partitions, as far as it is known still; whether that can be said now."""
    groups = dict.fromkeys(group_id for group_id, _ in places)
    if any(machine.pending.places(group_id) for group_id in groups):
        return False
    found = [(group_id, place, machine.committed(group_id).get(place)) for group_id, place in places]
    turn.records += [offsets.entry(group_id, place, one) for group_id, place, one in found if one is not None]
    return True


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
