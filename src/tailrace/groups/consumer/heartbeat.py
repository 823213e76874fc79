"""ConsumerGroupHeartbeat, the one request of KIP-848: a member reports changes and gets its epoch and assignment.

A heartbeat has three steps, each of which may write records: update the member's metadata and subscription, compute
the target assignment if the group's epoch was bumped, and reconcile this member with it. Most heartbeats change
nothing, and skip all three.
"""

from dataclasses import replace

from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.expressions import compiled
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import STATIC_LEAVE_EPOCH, ConsumerMember, CurrentAssignment, Profile
from tailrace.groups.consumer.partition_sets import PartitionSet, difference
from tailrace.groups.consumer.reconciling import reconcile
from tailrace.groups.consumer.requests import JOIN_EPOCH, UNCHANGED, Heartbeat, HeartbeatAnswer
from tailrace.groups.consumer.target_assignment import refresh_subscriptions, update_target
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import (
    FencedInstance,
    FencedMemberEpoch,
    GroupFull,
    InvalidExpression,
    UnknownMember,
    UnreleasedInstance,
)
from tailrace.model.limits import GROUP_EXPRESSIONS_MAX, GROUP_SUBSCRIBED_NAMES_MAX


def heartbeat(group: ConsumerGroup, beat: Heartbeat, turn: GroupTurn) -> HeartbeatAnswer:
    replaced = _replaced_static_member(group, beat)
    known = replaced or _known_member(group, beat)
    profile = _updated_profile(beat, None if known is None else known.profile)
    _check(group, known, profile, turn)
    member_id = beat.identity.member_id
    if known is None or replaced is not None or not _is_unchanged(group, known, profile, turn):
        draft = Draft(group, turn)
        if replaced is not None:
            replace_static_member(draft, replaced, member_id)
        update_member(draft, member_id, profile)
        update_target(draft)
        reconcile(draft, member_id, beat.owned, is_sure=beat.epoch == JOIN_EPOCH)
        group.adopt_topics_revision(draft.group)
        member = draft.member(member_id)
    else:
        member = known
    group.restart_session(member, turn)
    has_new_assignment = known is None or known.current.assigned != member.current.assigned
    return HeartbeatAnswer(
        member_id=member_id,
        epoch=member.current.epoch,
        interval_ms=turn.heartbeat_interval_ms(group.id),
        assigned=member.current.assigned if beat.is_full or has_new_assignment else None,
    )


# Finding and checking the member


def _replaced_static_member(group: ConsumerGroup, beat: Heartbeat) -> ConsumerMember | None:
    """The static member that a client replaces when it joins with the same instance id and another member id."""
    instance_id = beat.identity.instance_id
    known = group.members.get(group.static_members.get(instance_id or "", ""))
    if beat.epoch != JOIN_EPOCH or instance_id is None or known is None or known.id == beat.identity.member_id:
        return None
    if not (known.is_away or known.is_classic):
        raise UnreleasedInstance(f"Instance id {instance_id} of group {group.id} is still in use by member {known.id}.")
    return known


def _known_member(group: ConsumerGroup, beat: Heartbeat) -> ConsumerMember | None:
    """The member that the request identifies, if its epoch is valid; None: it is new."""
    if beat.epoch == JOIN_EPOCH:  # a fenced member rejoins like this, with its member id
        return group.members.get(beat.identity.member_id)
    member = find_member(group, beat.identity)
    if not (beat.epoch == member.current.epoch or _has_missed_answer(member.current, beat)):
        raise FencedMemberEpoch(
            f"Member {member.id} of group {group.id} is in epoch {member.current.epoch}, not {beat.epoch}. "
            "The member must abandon all its partitions and rejoin."
        )
    return member


def find_member(group: ConsumerGroup, identity: MemberId) -> ConsumerMember:
    """The member that a request identifies; raises `FencedInstance` or `UnknownMember` if there is none."""
    if identity.instance_id is not None:
        known = group.static_members.get(identity.instance_id)
        if known is None:
            raise UnknownMember(f"Instance id {identity.instance_id} is not in group {group.id}.")
        if known != identity.member_id:
            raise FencedInstance(f"Instance id {identity.instance_id} of group {group.id} belongs to member {known}.")
    member = group.members.get(identity.member_id)
    if member is None:
        raise UnknownMember(f"Member {identity} is not a member of group {group.id}.")
    return member


def _has_missed_answer(current: CurrentAssignment, beat: Heartbeat) -> bool:
    """Whether the member sends its previous epoch and owns nothing beyond its assignment: the last answer was lost."""
    if beat.epoch != current.previous_epoch or current.epoch == STATIC_LEAVE_EPOCH or beat.owned is None:
        return False
    return not difference(beat.owned, current.assigned)


def _check(group: ConsumerGroup, known: ConsumerMember | None, profile: Profile, turn: GroupTurn) -> None:
    max_size = turn.rules.consumer_max_size
    if known is None and len(group.members) >= max_size:
        raise GroupFull(f"Group {group.id} has {len(group.members)} members; group.consumer.max.size is {max_size}.")
    if known is not None and known.profile == profile:
        return
    if profile.subscribed_topic_regex:
        _check_expression(group, profile.subscribed_topic_regex)
    names = sum(len(one.profile.subscribed_topic_names) for one in group.members.values())
    if names + len(profile.subscribed_topic_names) > GROUP_SUBSCRIBED_NAMES_MAX:
        raise GroupFull(f"Members of group {group.id} name more than {GROUP_SUBSCRIBED_NAMES_MAX} topics.")


def _check_expression(group: ConsumerGroup, expression: str) -> None:
    if expression not in group.expressions and len(group.expressions) >= GROUP_EXPRESSIONS_MAX:
        raise InvalidExpression(
            f"Group {group.id} has {len(group.expressions)} regular expressions already: use one of those."
        )
    compiled(expression)


def _updated_profile(beat: Heartbeat, before: Profile | None) -> Profile:
    """The member's metadata so far, with the changes that this heartbeat reports."""
    old = before or Profile(
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        subscribed_topic_names=(),
        subscribed_topic_regex=None,
        server_assignor=None,
    )
    has_timeout = beat.rebalance_timeout_ms != UNCHANGED
    return replace(
        old,
        instance_id=beat.identity.instance_id if beat.identity.instance_id is not None else old.instance_id,
        rack_id=beat.rack_id if beat.rack_id is not None else old.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        subscribed_topic_names=old.subscribed_topic_names if beat.names is None else _sorted_once(beat.names),
        subscribed_topic_regex=old.subscribed_topic_regex if beat.expression is None else beat.expression,
        rebalance_timeout_ms=beat.rebalance_timeout_ms if has_timeout else old.rebalance_timeout_ms,
        server_assignor=beat.assignor if beat.assignor is not None else old.server_assignor,
        classic_member_metadata=None,
    )


def _sorted_once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(names)))


def _is_unchanged(group: ConsumerGroup, member: ConsumerMember, profile: Profile, turn: GroupTurn) -> bool:
    """The member reports nothing new, the topics are the same, and the member has reached its target assignment."""
    return (
        member.profile == profile
        and group.topics_revision == turn.topics.revision
        and group.epoch == group.assignment_epoch
        and group.has_reached_target(member)
    )


# Changes to the group


def update_member(draft: Draft, member_id: str, profile: Profile, *, may_match: bool = True) -> None:
    """Write the member's metadata; bump the group's epoch if the subscription or the topics have changed."""
    group, turn = draft.group, draft.turn
    known = group.members.get(member_id)
    if known is None or known.profile != profile:
        draft.set_profile(member_id, profile)
    changed = known is None or _subscription(known.profile) != _subscription(profile)
    if changed or group.topics_revision != turn.topics.revision:
        refresh_subscriptions(draft, changed=changed, may_match=may_match)


def _subscription(profile: Profile) -> tuple[tuple[str, ...], str]:
    return profile.subscribed_topic_names, profile.subscribed_topic_regex or ""


def replace_static_member(draft: Draft, replaced: ConsumerMember, member_id: str) -> None:
    """Give the partitions of a static member to the new member id of the same instance."""
    target: PartitionSet = draft.group.target.get(replaced.id, ())
    draft.remove_member(replaced.id)
    draft.set_profile(member_id, replaced.profile)
    draft.set_target(member_id, target)
    draft.set_current(member_id, CurrentAssignment(epoch=0, previous_epoch=0, assigned=replaced.current.assigned))
