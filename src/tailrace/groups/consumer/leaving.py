"""How members of a consumer group leave: on request, by session timeout, or by not revoking partitions in time."""

from collections.abc import Iterable
from dataclasses import replace

from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import STATIC_LEAVE_EPOCH, ConsumerMember
from tailrace.groups.consumer.states import MemberState
from tailrace.groups.consumer.target_assignment import refresh_subscriptions
from tailrace.groups.turn import Alarm, GroupTurn


def leave_temporarily(group: ConsumerGroup, member: ConsumerMember, turn: GroupTurn) -> None:
    """A static member leaves and may come back: it keeps its partitions until its session expires."""
    Draft(group, turn).set_current(member.id, replace(member.current, epoch=STATIC_LEAVE_EPOCH, revoking=()))
    turn.alarms.cancel(group.rebalance_alarm(member.id))
    group.restart_session(member, turn)


def remove_members(group: ConsumerGroup, member_ids: Iterable[str], turn: GroupTurn) -> None:
    """Remove members, which frees their partitions."""
    draft = Draft(group, turn)
    for member_id in member_ids:
        draft.remove_member(member_id)
    refresh_subscriptions(draft, changed=True, may_match=False)
    if not draft.group.members:
        draft.set_assignment_epoch(draft.group.epoch)  # without members there is no target to compute


def removes_member(group: ConsumerGroup, alarm: Alarm) -> bool:
    """Whether an alarm that rings removes its member."""
    member = group.members.get(alarm.member_id)
    if member is None:
        return False
    return alarm.what != "rebalance" or member.current.state is MemberState.UNREVOKED


def start_alarms(group: ConsumerGroup, turn: GroupTurn) -> None:
    """A new coordinator becomes active: session timeouts start over, and rebalance timeouts of members that revoke."""
    for member in group.members.values():
        group.restart_session(member, turn)
        if member.current.state is MemberState.UNREVOKED and not member.is_classic:
            turn.alarm(group.rebalance_alarm(member.id), member.profile.rebalance_timeout_ms)
