"""ConsumerGroupHeartbeat: the one request of KIP-848. A member is there, says what changed, and hears what it has.

Three steps, each of which may write something: who the member is and what it reads; who shall have what, if that is to
be worked out anew; and this member's next step towards it. Mostly none does, and the heartbeat costs nothing.
"""

from dataclasses import replace

from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.expressions import compiled
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import AWAY, ConsumerMember, Profile, Standing
from tailrace.groups.consumer.reconciling import reconcile
from tailrace.groups.consumer.requests import AS_BEFORE, JOINING, Heartbeat, HeartbeatAnswer
from tailrace.groups.consumer.shares import Share, without
from tailrace.groups.consumer.subscribing import look, retarget
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
    replaced = _replaced(group, beat)
    known = replaced or _known(group, beat)
    profile = profile_of(beat, None if known is None else known.profile)
    _check(group, known, profile, turn)
    member_id = beat.who.member_id
    if known is None or replaced is not None or not _is_quiet(group, known, profile, turn):
        draft = Draft(group, turn)
        if replaced is not None:
            take_the_place_of(draft, replaced, member_id)
        update(draft, member_id, profile)
        retarget(draft)
        reconcile(draft, member_id, beat.owned, is_sure=beat.epoch == JOINING)
        group.has_looked(draft.group)
        member = draft.member(member_id)
    else:
        member = known
    group.hear(member, turn)
    changed = known is None or known.standing.assigned != member.standing.assigned
    return HeartbeatAnswer(
        member_id=member_id,
        epoch=member.standing.epoch,
        interval_ms=turn.heartbeat_interval_ms(group.id),
        assigned=member.standing.assigned if beat.is_full or changed else None,
    )


# Who it is


def _replaced(group: ConsumerGroup, beat: Heartbeat) -> ConsumerMember | None:
    """The static member whose place somebody takes who joins."""
    instance_id = beat.who.instance_id
    known = group.members.get(group.static.get(instance_id or "", ""))
    if beat.epoch != JOINING or instance_id is None or known is None or known.id == beat.who.member_id:
        return None
    if not (known.is_away or known.is_classic):
        raise UnreleasedInstance(f"{instance_id} of group {group.id} is {known.id}, which has not left")
    return known


def _known(group: ConsumerGroup, beat: Heartbeat) -> ConsumerMember | None:
    """The member that it says it is, in the epoch that it should be in; None: it is new."""
    if beat.epoch == JOINING:  # whoever was fenced comes back like this, under the id that it had
        return group.members.get(beat.who.member_id)
    member = find(group, beat.who)
    if not (beat.epoch == member.standing.epoch or _has_missed_an_answer(member.standing, beat)):
        raise FencedMemberEpoch(
            f"{member.id} of group {group.id} is in epoch {member.standing.epoch}, not {beat.epoch}: "
            "it must give up all it has, and join again"
        )
    return member


def find(group: ConsumerGroup, who: MemberId) -> ConsumerMember:
    """A member by what it says it is; a fault where it is not."""
    if who.instance_id is not None:
        known = group.static.get(who.instance_id)
        if known is None:
            raise UnknownMember(f"{who.instance_id} is not in group {group.id}")
        if known != who.member_id:
            raise FencedInstance(f"{who.instance_id} of group {group.id} is another client by now")
    member = group.members.get(who.member_id)
    if member is None:
        raise UnknownMember(f"{who.member_id} is not in group {group.id}")
    return member


def _has_missed_an_answer(standing: Standing, beat: Heartbeat) -> bool:
    if beat.epoch != standing.previous_epoch or standing.epoch == AWAY or beat.owned is None:
        return False
    return not without(beat.owned, standing.assigned)


def _check(group: ConsumerGroup, known: ConsumerMember | None, profile: Profile, turn: GroupTurn) -> None:
    if known is None and len(group.members) >= turn.rules.consumer_max_size:
        raise GroupFull(f"group {group.id} has {len(group.members)} members; see group.consumer.max.size")
    if known is not None and known.profile == profile:
        return
    if profile.subscribed_topic_regex:
        check_expression(group, profile.subscribed_topic_regex)
    names = sum(len(one.profile.subscribed_topic_names) for one in group.members.values())
    if names + len(profile.subscribed_topic_names) > GROUP_SUBSCRIBED_NAMES_MAX:
        raise GroupFull(f"group {group.id}: its members name more than {GROUP_SUBSCRIBED_NAMES_MAX} topics")


def check_expression(group: ConsumerGroup, expression: str) -> None:
    if expression not in group.expressions and len(group.expressions) >= GROUP_EXPRESSIONS_MAX:
        raise InvalidExpression(f"group {group.id} has {len(group.expressions)} other expressions: use one of those")
    compiled(expression)


def profile_of(beat: Heartbeat, before: Profile | None) -> Profile:
    """What a member says of itself, with what it said before."""
    old = before or Profile(
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        subscribed_topic_names=(),
        subscribed_topic_regex=None,
        server_assignor=None,
    )
    said = beat.rebalance_timeout_ms != AS_BEFORE
    return replace(
        old,
        instance_id=beat.who.instance_id if beat.who.instance_id is not None else old.instance_id,
        rack_id=beat.rack_id if beat.rack_id is not None else old.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        subscribed_topic_names=old.subscribed_topic_names if beat.names is None else _in_order(beat.names),
        subscribed_topic_regex=old.subscribed_topic_regex if beat.expression is None else beat.expression,
        rebalance_timeout_ms=beat.rebalance_timeout_ms if said else old.rebalance_timeout_ms,
        server_assignor=beat.assignor if beat.assignor is not None else old.server_assignor,
        classic_member_metadata=None,
    )


def _in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(names)))


def _is_quiet(group: ConsumerGroup, member: ConsumerMember, profile: Profile, turn: GroupTurn) -> bool:
    """Nothing is new, and nothing is left to do."""
    return (
        member.profile == profile
        and group.looked_at == turn.topics.revision
        and group.epoch == group.assignment_epoch
        and group.has_arrived(member)
    )


# What changes


def update(draft: Draft, member_id: str, profile: Profile, *, tries: bool = True) -> None:
    """A member says something of itself; the group's epoch rises if that, or what became of the topics, asks for it."""
    group, turn = draft.group, draft.turn
    known = group.members.get(member_id)
    if known is None or known.profile != profile:
        draft.describe(member_id, profile)
    changed = known is None or _reads(known.profile) != _reads(profile)
    if changed or group.looked_at != turn.topics.revision:
        look(draft, changed=changed, tries=tries)


def _reads(profile: Profile) -> tuple[tuple[str, ...], str]:
    return profile.subscribed_topic_names, profile.subscribed_topic_regex or ""


def take_the_place_of(draft: Draft, gone: ConsumerMember, member_id: str) -> None:
    """A static member is another client from now on, and goes on with what it had."""
    target: Share = draft.group.target.get(gone.id, ())
    draft.remove(gone.id)
    draft.describe(member_id, gone.profile)
    draft.aim(member_id, target)
    draft.stand(member_id, Standing(epoch=0, previous_epoch=0, assigned=gone.standing.assigned))
