"""A rebalance of a classic group: all members are made to join, and those that do form the next generation.

Members that do not join within the rebalance timeout are removed, except static ones, which may be away until their
session expires. The first rebalance of an empty group is delayed (`group.initial.rebalance.delay.ms`) and delayed again
while members keep joining, so that ten consumers started at once make one generation and not ten.
"""

from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.member import ClassicMember
from tailrace.groups.classic.states import Cause, State
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import RebalanceInProgress


def prepare_rebalance(group: ClassicGroup, turn: GroupTurn) -> None:
    """Start a rebalance: every member has to join again."""
    for member in group.members.values():
        if member.syncing is not None:
            turn.answer(member.syncing, RebalanceInProgress(f"Group {group.id} is rebalancing."))
            member.syncing = None
            group.restart_session(member, turn)
    group.unsynced.clear()
    turn.alarms.cancel(group.sync_alarm)
    group.is_first_rebalance = group.state is State.EMPTY
    group.move(Cause.NEEDED, turn)
    timeout_ms = group.rebalance_timeout_ms
    if group.is_first_rebalance:
        group.first_rebalance_deadline = turn.now + timeout_ms / 1000
        group.has_new_members = False
        timeout_ms = min(turn.rules.initial_rebalance_delay_ms, timeout_ms)
        group.is_first_rebalance = timeout_ms > 0
    turn.alarm(group.join_alarm, timeout_ms)
    complete_if_all_joined(group, turn)


def prepare_or_complete(group: ClassicGroup, turn: GroupTurn) -> None:
    """A member has joined: start a rebalance, or complete the current one if this was the last member missing."""
    if group.state is State.PREPARING:
        complete_if_all_joined(group, turn)
    else:
        prepare_rebalance(group, turn)


def complete_if_all_joined(group: ClassicGroup, turn: GroupTurn) -> None:
    if group.state is State.PREPARING and not group.is_first_rebalance and group.all_have_joined:
        complete_join(group, turn)


def join_expired(group: ClassicGroup, turn: GroupTurn) -> None:
    """The rebalance timeout, or the initial rebalance delay, is over."""
    left_ms = int((group.first_rebalance_deadline - turn.now) * 1000)
    if group.is_first_rebalance and group.has_new_members and left_ms > 0:
        group.has_new_members = False
        turn.alarm(group.join_alarm, min(turn.rules.initial_rebalance_delay_ms, left_ms))
    else:
        complete_join(group, turn)


def complete_join(group: ClassicGroup, turn: GroupTurn) -> None:
    """Make the next generation of the members that have joined."""
    turn.alarms.cancel(group.join_alarm)
    group.is_first_rebalance = False
    for member in list(group.members.values()):
        if member.joining is None and member.instance_id is None:
            group.remove(member, turn)
    if group.members and not _elect_leader(group):
        turn.alarm(group.join_alarm, group.rebalance_timeout_ms)  # only static members, and none has joined
        return
    group.generation += 1
    if not group.members:
        group.protocol = group.leader = None
        group.move(Cause.DESERTED, turn)
        turn.records.append(group.entry({}, turn.wall_ms))
        return
    group.protocol = group.select_protocol()
    group.move(Cause.JOINED, turn)
    for member in group.members.values():
        turn.answer(member.joining, group.join_answer(member))
        member.joining, member.is_new = None, False
        group.unsynced[member.id] = None
        group.restart_session(member, turn)
    turn.alarm(group.sync_alarm, group.rebalance_timeout_ms)


def _elect_leader(group: ClassicGroup) -> bool:
    """Keep the leader if it has joined, or choose a member that has; returns False if none has."""
    leader = group.members.get(group.leader or "")
    if leader is None or leader.joining is None:
        leader = next((one for one in group.members.values() if one.joining is not None), None)
    if leader is None:
        return False
    group.leader = leader.id
    return True


def sync_expired(group: ClassicGroup, turn: GroupTurn) -> None:
    """Remove the members that joined this generation and did not sync in time: the group cannot wait for them."""
    late = [group.members[one] for one in group.unsynced]
    for member in late:
        group.remove(member, turn)
    if late and group.state in (State.COMPLETING, State.STABLE):
        prepare_rebalance(group, turn)


def session_expired(group: ClassicGroup, member_id: str, turn: GroupTurn) -> None:
    """Remove a member, or a pending member id, whose session timeout is over.

    A member that waits for an answer sends no heartbeats, and stays; a new one that waits has a longer timeout."""
    if member_id in group.pending:
        del group.pending[member_id]
        complete_if_all_joined(group, turn)
        return
    member = group.members[member_id]
    waits = member.syncing is not None or (member.joining is not None and not member.is_new)
    if not waits:
        remove_member(group, member, turn)


def remove_member(group: ClassicGroup, member: ClassicMember, turn: GroupTurn) -> None:
    """A member leaves or has failed: the others rebalance."""
    group.remove(member, turn)
    if group.state is State.PREPARING:
        complete_if_all_joined(group, turn)
    else:
        prepare_rebalance(group, turn)
