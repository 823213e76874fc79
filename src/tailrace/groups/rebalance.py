"""How a generation is made: members are called to join, and what happens when they have, or have not in time.

Members that do not come in time are removed, static ones excepted: they may be away for a session. A group that begins
waits a little for more to come, so that ten consumers started at once make one generation and not ten.
"""

from tailrace.groups.group import ClassicGroup
from tailrace.groups.member import ClassicMember
from tailrace.groups.states import Cause, State
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import RebalanceInProgress


def prepare(group: ClassicGroup, turn: GroupTurn) -> None:
    """Let all members join again."""
    for member in group.members.values():
        if member.syncing is not None:
            turn.answer(member.syncing, RebalanceInProgress(f"group {group.id} must be shared out anew"))
            member.syncing = None
            group.hear(member, turn)
    group.unsynced.clear()
    turn.alarms.cancel(group.sync_alarm)
    group.is_first = group.state is State.EMPTY
    group.move(Cause.NEEDED, turn)
    timeout_ms = group.rebalance_timeout_ms
    if group.is_first:
        group.first_until = turn.now + timeout_ms / 1000
        group.has_newcomers = False
        timeout_ms = min(turn.rules.initial_rebalance_delay_ms, timeout_ms)
        group.is_first = timeout_ms > 0
    turn.alarm(group.join_alarm, timeout_ms)
    complete_if_all_joined(group, turn)


def prepare_or_complete(group: ClassicGroup, turn: GroupTurn) -> None:
    """Somebody joins."""
    if group.state is State.PREPARING:
        complete_if_all_joined(group, turn)
    else:
        prepare(group, turn)


def complete_if_all_joined(group: ClassicGroup, turn: GroupTurn) -> None:
    if group.state is State.PREPARING and not group.is_first and group.all_have_joined:
        complete(group, turn)


def time_to_join_is_up(group: ClassicGroup, turn: GroupTurn) -> None:
    left_ms = int((group.first_until - turn.now) * 1000)
    if group.is_first and group.has_newcomers and left_ms > 0:
        group.has_newcomers = False
        turn.alarm(group.join_alarm, min(turn.rules.initial_rebalance_delay_ms, left_ms))
    else:
        complete(group, turn)


def complete(group: ClassicGroup, turn: GroupTurn) -> None:
    """Those who have joined are the next generation."""
    turn.alarms.cancel(group.join_alarm)
    group.is_first = False
    for member in list(group.members.values()):
        if member.joining is None and member.instance_id is None:
            group.remove(member, turn)
    if group.members and not _elect(group):
        turn.alarm(group.join_alarm, group.rebalance_timeout_ms)  # static members, all of them away
        return
    group.generation += 1
    if not group.members:
        group.protocol = group.leader = None
        group.move(Cause.DESERTED, turn)
        turn.records.append(group.entry({}, turn.wall_ms))
        return
    group.protocol = group.best_protocol()
    group.move(Cause.JOINED, turn)
    for member in group.members.values():
        turn.answer(member.joining, group.joined(member))
        member.joining, member.is_new = None, False
        group.unsynced[member.id] = None
        group.hear(member, turn)
    turn.alarm(group.sync_alarm, group.rebalance_timeout_ms)


def _elect(group: ClassicGroup) -> bool:
    """Let somebody lead who is there; False: nobody is."""
    leader = group.members.get(group.leader or "")
    if leader is None or leader.joining is None:
        leader = next((one for one in group.members.values() if one.joining is not None), None)
    if leader is None:
        return False
    group.leader = leader.id
    return True


def time_to_sync_is_up(group: ClassicGroup, turn: GroupTurn) -> None:
    """Whoever joined and did not ask for its part holds up the others: it is out."""
    late = [group.members[one] for one in group.unsynced]
    for member in late:
        group.remove(member, turn)
    if late and group.state in (State.COMPLETING, State.STABLE):
        prepare(group, turn)


def session_is_over(group: ClassicGroup, member_id: str, turn: GroupTurn) -> None:
    """Nothing was heard of a member, or of somebody who was to join."""
    if member_id in group.pending:
        del group.pending[member_id]
        complete_if_all_joined(group, turn)
        return
    member = group.members[member_id]
    waits = member.syncing is not None or (member.joining is not None and not member.is_new)
    if not waits:
        let_go(group, member, turn)


def let_go(group: ClassicGroup, member: ClassicMember, turn: GroupTurn) -> None:
    """A member leaves, or is lost."""
    group.remove(member, turn)
    if group.state is State.PREPARING:
        complete_if_all_joined(group, turn)
    else:
        prepare(group, turn)
