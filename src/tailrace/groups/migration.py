"""A group changes its kind while members run, as `group.consumer.migration.policy` allows.

The first member of the consumer protocol makes a consumer group of a classic one: its members go on with what they
have, in an epoch that is their generation, and are made to join again as soon as there is something to do. When the
last one goes, the group is classic again, and its members share out the work themselves.
"""

from collections.abc import Container, Sequence
from dataclasses import replace

from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.embedded import assignment, assignment_of, subscription_of
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember, Profile, Standing
from tailrace.groups.consumer.records import ClassicMemberMetadata, ClassicProtocol
from tailrace.groups.consumer.shares import Share
from tailrace.groups.group import ClassicGroup
from tailrace.groups.member import ClassicMember
from tailrace.groups.records import Entry, GroupMetadataKey
from tailrace.groups.states import State
from tailrace.groups.subscription import CONSUMER_PROTOCOL
from tailrace.groups.turn import GroupTurn
from tailrace.model.alarms import Alarms
from tailrace.model.faults import Fault, GroupNotFound, RebalanceInProgress
from tailrace.model.ids import TopicPartition


def upgraded(group: ClassicGroup, turn: GroupTurn) -> tuple[ConsumerGroup, list[Entry]]:
    """What a classic group becomes, and the records that make it so; nothing has happened yet."""
    gone = Entry(GroupMetadataKey(group=group.id), None)
    if group.is_empty:
        return ConsumerGroup(group.id), [gone]
    _check_upgrade(group, turn)
    aside = replace(turn, records=[], alarms=Alarms())
    draft = Draft(ConsumerGroup(group.id), aside)
    draft.begin(group.generation)
    taken: dict[TopicPartition, None] = {}
    for member in group.members.values():
        had = assignment_of(member.assignment, turn.topics)
        _take_over(draft, group, member, tuple(one for one in had if one not in taken))
        taken |= dict.fromkeys(had)
    draft.aimed(group.generation)
    return draft.group, [gone, *(one for one in aside.records if isinstance(one, Entry))]


def _check_upgrade(group: ClassicGroup, turn: GroupTurn) -> None:
    may = turn.rules.may_upgrade and group.protocol_type == CONSUMER_PROTOCOL
    if not may or len(group.members) > turn.rules.consumer_max_size:
        raise GroupNotFound(f"group {group.id} is no consumer group, and cannot be made one while it has members")
    try:
        for member in group.members.values():
            subscription_of(_subscription(group, member))
    except Fault as fault:
        raise GroupNotFound(f"group {group.id} is no consumer group, and cannot be made one: {fault}") from None


def _subscription(group: ClassicGroup, member: ClassicMember) -> bytes:
    return member.protocols.get(group.protocol or "", next(iter(member.protocols.values()), b""))


def _take_over(draft: Draft, group: ClassicGroup, member: ClassicMember, has: Share) -> None:
    subscription = subscription_of(_subscription(group, member))
    profile = Profile(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(dict.fromkeys(subscription.topics))),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=data) for name, data in member.protocols.items()
            ),
        ),
    )
    draft.describe(member.id, profile)
    draft.aim(member.id, has)
    draft.stand(member.id, Standing(epoch=group.generation, previous_epoch=group.generation, assigned=has))


def give_way(group: ClassicGroup, instead: ConsumerGroup, turn: GroupTurn) -> None:
    """A consumer group takes the place of a classic one: whoever waits there is told to join again."""
    for member in group.members.values():
        again = RebalanceInProgress(f"group {group.id} is shared out by its coordinator from now on")
        turn.answer(member.joining, again)
        turn.answer(member.syncing, again)
    for pending in group.pending:
        turn.alarms.cancel(group.session_of(pending))
    turn.alarms.cancel(group.join_alarm)
    turn.alarms.cancel(group.sync_alarm)
    for one in instead.members.values():
        if one.is_classic:
            instead.hear(one, turn)


def is_to_go_back(group: ConsumerGroup, without: Container[str], turn: GroupTurn) -> bool:
    """Whether a group without these members is a classic one again."""
    left = [one for one in group.members.values() if one.id not in without]
    may = turn.rules.may_downgrade and 0 < len(left) <= turn.rules.max_size
    return may and all(one.is_classic for one in left)


def downgraded(group: ConsumerGroup, gone: Sequence[str], turn: GroupTurn) -> ClassicGroup:
    """The classic group that a consumer group becomes, which is written down; its members share out anew."""
    classic = ClassicGroup(group.id)
    classic.state, classic.generation, classic.protocol_type = State.STABLE, group.epoch, CONSUMER_PROTOCOL
    for member in group.members.values():
        if member.id not in gone:
            classic.add(_as_classic(member))
    classic.protocol = classic.best_protocol()
    parts = {
        one.id: assignment(group.target.get(one.id, ()), turn.topics, next(iter(one.protocols.values())))
        for one in classic.members.values()
    }
    for one in classic.members.values():
        one.assignment = parts[one.id]
    Draft(group, turn).end()
    turn.records.append(classic.entry(parts, turn.wall_ms))
    for one in classic.members.values():
        classic.hear(one, turn)
    return classic


def _as_classic(member: ConsumerMember) -> ClassicMember:
    profile, said = member.profile, member.profile.classic_member_metadata
    assert said is not None, "only members of the classic protocol are left"
    return ClassicMember(
        id=member.id,
        instance_id=profile.instance_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        session_timeout_ms=said.session_timeout_ms,
        protocols={one.name: one.metadata for one in said.supported_protocols},
    )
