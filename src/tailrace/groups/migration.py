"""Online migration of a group between the classic and the consumer protocol (`group.consumer.migration.policy`).

Upgrade: the first member that joins with the consumer protocol turns a classic group into a consumer group. The other
members keep their partitions, and their generation becomes their epoch. They are told to rejoin when the target
assignment asks something of them. Downgrade: when the last member of the consumer protocol leaves, the group becomes
classic again and rebalances.
"""

from collections.abc import Container, Sequence
from dataclasses import replace

from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.member import ClassicMember
from tailrace.groups.classic.states import State
from tailrace.groups.consumer.classic_members import classic_profile
from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember, CurrentAssignment
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.consumer_protocol import (
    CONSUMER_PROTOCOL,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from tailrace.groups.records import Entry, GroupMetadataKey
from tailrace.groups.turn import GroupTurn
from tailrace.model.alarms import Alarms
from tailrace.model.faults import Fault, GroupNotFound, RebalanceInProgress
from tailrace.model.ids import TopicPartition


def upgraded(group: ClassicGroup, turn: GroupTurn) -> tuple[ConsumerGroup, list[Entry]]:
    """The consumer group that a classic group becomes, and the records of that change; the turn stays unchanged."""
    tombstone = Entry(GroupMetadataKey(group=group.id), None)
    if group.is_empty:
        return ConsumerGroup(group.id), [tombstone]
    _check_upgrade(group, turn)
    scratch = replace(turn, records=[], alarms=Alarms())
    draft = Draft(ConsumerGroup(group.id), scratch)
    draft.set_epoch(group.generation)
    taken: dict[TopicPartition, None] = {}
    for member in group.members.values():
        owned = decode_assignment(member.assignment, turn.topics)
        _add_classic_member(draft, group, member, tuple(one for one in owned if one not in taken))
        taken |= dict.fromkeys(owned)
    draft.set_assignment_epoch(group.generation)
    return draft.group, [tombstone, *(one for one in scratch.records if isinstance(one, Entry))]


def _check_upgrade(group: ClassicGroup, turn: GroupTurn) -> None:
    may = turn.rules.may_upgrade and group.protocol_type == CONSUMER_PROTOCOL
    if not may or len(group.members) > turn.rules.consumer_max_size:
        raise GroupNotFound(f"Group {group.id} is not a consumer group and cannot be upgraded while it has members.")
    try:
        for member in group.members.values():
            decode_subscription(_subscription(group, member))
    except Fault as fault:
        raise GroupNotFound(f"Group {group.id} is not a consumer group and cannot be upgraded: {fault}") from None


def _subscription(group: ClassicGroup, member: ClassicMember) -> bytes:
    return member.protocols.get(group.protocol or "", next(iter(member.protocols.values()), b""))


def _add_classic_member(draft: Draft, group: ClassicGroup, member: ClassicMember, owned: PartitionSet) -> None:
    subscription = decode_subscription(_subscription(group, member))
    draft.set_profile(member.id, classic_profile(member, member.instance_id, subscription))
    draft.set_target(member.id, owned)
    draft.set_current(
        member.id, CurrentAssignment(epoch=group.generation, previous_epoch=group.generation, assigned=owned)
    )


def hand_over(group: ClassicGroup, upgraded: ConsumerGroup, turn: GroupTurn) -> None:
    """A consumer group replaces a classic one: answer waiting requests with REBALANCE_IN_PROGRESS, move the alarms."""
    for member in group.members.values():
        rejoin = RebalanceInProgress(f"Group {group.id} was upgraded to a consumer group.")
        turn.answer(member.joining, rejoin)
        turn.answer(member.syncing, rejoin)
    for pending in group.pending:
        turn.alarms.cancel(group.session_alarm(pending))
    turn.alarms.cancel(group.join_alarm)
    turn.alarms.cancel(group.sync_alarm)
    for one in upgraded.members.values():
        if one.is_classic:
            upgraded.restart_session(one, turn)


def must_downgrade(group: ConsumerGroup, leaving: Container[str], turn: GroupTurn) -> bool:
    """Whether only members of the classic protocol remain when these leave."""
    remaining = [one for one in group.members.values() if one.id not in leaving]
    may = turn.rules.may_downgrade and 0 < len(remaining) <= turn.rules.max_size
    return may and all(one.is_classic for one in remaining)


def downgraded(group: ConsumerGroup, leaving: Sequence[str], turn: GroupTurn) -> ClassicGroup:
    """Write the records of the downgrade; returns the classic group, which the caller must rebalance."""
    classic = ClassicGroup(group.id)
    classic.state, classic.generation, classic.protocol_type = State.STABLE, group.epoch, CONSUMER_PROTOCOL
    for member in group.members.values():
        if member.id not in leaving:
            classic.add(_as_classic(member))
    classic.protocol = classic.select_protocol()
    assignments = {
        one.id: encode_assignment(group.target.get(one.id, ()), turn.topics, next(iter(one.protocols.values())))
        for one in classic.members.values()
    }
    for one in classic.members.values():
        one.assignment = assignments[one.id]
    Draft(group, turn).delete_group()
    turn.records.append(classic.entry(assignments, turn.wall_ms))
    for one in classic.members.values():
        classic.restart_session(one, turn)
    return classic


def _as_classic(member: ConsumerMember) -> ClassicMember:
    profile, classic = member.profile, member.profile.classic_member_metadata
    assert classic is not None, "a downgraded group has only members of the classic protocol"
    return ClassicMember(
        id=member.id,
        instance_id=profile.instance_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocols={one.name: one.metadata for one in classic.supported_protocols},
    )
