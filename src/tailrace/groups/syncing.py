"""SyncGroup, Heartbeat, LeaveGroup: what members do in a generation, and how they go."""

from tailrace.groups.group import ClassicGroup
from tailrace.groups.rebalance import complete_if_all_joined, let_go
from tailrace.groups.requests import MemberId, Synced, Syncing, Ticket
from tailrace.groups.states import Cause, State
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import FencedInstance, InconsistentProtocol, RebalanceInProgress, UnknownMember


def sync(group: ClassicGroup, wanted: Syncing, ticket: Ticket, turn: GroupTurn) -> None:
    """Give a member its part, when there is one."""
    member = group.find(wanted.who)
    group.require_generation(wanted.generation)
    for said, is_so in ((wanted.protocol_type, group.protocol_type), (wanted.protocol, group.protocol)):
        if said is not None and said != is_so:
            raise InconsistentProtocol(f"group {group.id} is shared out by {is_so}, not {said}")
    if group.state is State.PREPARING:
        raise RebalanceInProgress(f"group {group.id} must be shared out anew")
    group.unsynced.pop(member.id, None)
    group.hear(member, turn)
    if group.state is State.STABLE:
        turn.answer(ticket, _part(group, member.assignment))
        return
    turn.answer(member.syncing, RebalanceInProgress(f"{member.id} has asked once more"))
    member.syncing = ticket
    if member.id == group.leader:
        _share_out(group, wanted, turn)


def _share_out(group: ClassicGroup, wanted: Syncing, turn: GroupTurn) -> None:
    """The leader has decided. Whom it forgot gets nothing."""
    turn.records.append(group.entry(wanted.assignments, turn.wall_ms))
    group.move(Cause.ASSIGNED, turn)
    for member in group.members.values():
        if member.syncing is not None:
            turn.answer(member.syncing, _part(group, wanted.assignments.get(member.id, b"")))
            member.syncing = None
            group.hear(member, turn)


def _part(group: ClassicGroup, assignment: bytes) -> Synced:
    return Synced(protocol_type=group.protocol_type, protocol=group.protocol, assignment=assignment)


def heartbeat(group: ClassicGroup, who: MemberId, generation: int, turn: GroupTurn) -> None:
    member = group.find(who)
    group.require_generation(generation)
    group.hear(member, turn)
    if group.state is State.PREPARING:
        raise RebalanceInProgress(f"group {group.id} must be shared out anew")


def leave(group: ClassicGroup, who: MemberId, turn: GroupTurn) -> None:
    """A member goes, or is made to: a static one may be named by its instance id alone."""
    if who.instance_id is not None:
        known = group.static.get(who.instance_id)
        if known is None:
            raise UnknownMember(f"{who.instance_id} is not in group {group.id}")
        if who.member_id not in ("", known):
            raise FencedInstance(f"{who.instance_id} of group {group.id} is another client by now")
        let_go(group, group.members[known], turn)
    elif who.member_id in group.pending:
        del group.pending[who.member_id]
        turn.alarms.cancel(group.session_of(who.member_id))
        complete_if_all_joined(group, turn)
    else:
        let_go(group, group.find(who), turn)
