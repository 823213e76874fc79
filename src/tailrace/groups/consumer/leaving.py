"""How members of a consumer group go: they say so, fall silent, or do not give up in time what they shall not have."""

from collections.abc import Iterable
from dataclasses import replace

from tailrace.groups.alarms import Alarm
from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import AWAY, ConsumerMember
from tailrace.groups.consumer.states import MemberState
from tailrace.groups.consumer.subscribing import look
from tailrace.groups.turn import GroupTurn


def step_out(group: ConsumerGroup, member: ConsumerMember, turn: GroupTurn) -> None:
    """A static member leaves for a while: for a session, what it has is kept for it."""
    Draft(group, turn).stand(member.id, replace(member.standing, epoch=AWAY, revoking=()))
    turn.alarms.cancel(group.rebalance_of(member.id))
    group.hear(member, turn)


def let_go(group: ConsumerGroup, member_ids: Iterable[str], turn: GroupTurn) -> None:
    """Members are gone, and what they had is free."""
    draft = Draft(group, turn)
    for member_id in member_ids:
        draft.remove(member_id)
    look(draft, changed=True, tries=False)
    if not draft.group.members:
        draft.aimed(draft.group.epoch)  # there is nobody to share out for


def must_go(group: ConsumerGroup, alarm: Alarm) -> bool:
    """An alarm rings: whether that is the end of a member."""
    member = group.members.get(alarm.member_id)
    if member is None:
        return False
    return alarm.what != "rebalance" or member.standing.state is MemberState.UNREVOKED


def expect_all(group: ConsumerGroup, turn: GroupTurn) -> None:
    """The log is read: members have a session from now on to be heard of, and as long as ever to give things up."""
    for member in group.members.values():
        group.hear(member, turn)
        if member.standing.state is MemberState.UNREVOKED and not member.is_classic:
            turn.alarm(group.rebalance_of(member.id), member.profile.rebalance_timeout_ms)
