"""SyncGroup, Heartbeat and LeaveGroup of a classic group: the requests of members of a generation."""

from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.rebalance import complete_if_all_joined, remove_member
from tailrace.groups.classic.states import Cause, State
from tailrace.groups.requests import MemberId, SyncAnswer, SyncRequest, Ticket
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import FencedInstance, InconsistentProtocol, RebalanceInProgress, UnknownMember


def sync(group: ClassicGroup, request: SyncRequest, ticket: Ticket, turn: GroupTurn) -> None:
    """Answer with the member's assignment, at once or when the leader has sent it."""
    member = group.find(request.identity)
    group.require_generation(request.generation)
    for requested, actual in ((request.protocol_type, group.protocol_type), (request.protocol, group.protocol)):
        if requested is not None and requested != actual:
            raise InconsistentProtocol(f"Group {group.id} uses protocol {actual}, not {requested}.")
    if group.state is State.PREPARING:
        raise RebalanceInProgress(f"Group {group.id} is rebalancing.")
    group.unsynced.pop(member.id, None)
    group.restart_session(member, turn)
    if group.state is State.STABLE:
        turn.answer(ticket, _sync_answer(group, member.assignment))
        return
    turn.answer(member.syncing, RebalanceInProgress(f"Member {member.id} has sent another SyncGroup."))
    member.syncing = ticket
    if member.id == group.leader:
        _assign(group, request, turn)


def _assign(group: ClassicGroup, request: SyncRequest, turn: GroupTurn) -> None:
    """Apply the leader's assignment. A member that it leaves out gets an empty one."""
    turn.records.append(group.entry(request.assignments, turn.wall_ms))
    group.move(Cause.ASSIGNED, turn)
    for member in group.members.values():
        if member.syncing is not None:
            turn.answer(member.syncing, _sync_answer(group, request.assignments.get(member.id, b"")))
            member.syncing = None
            group.restart_session(member, turn)


def _sync_answer(group: ClassicGroup, assignment: bytes) -> SyncAnswer:
    return SyncAnswer(protocol_type=group.protocol_type, protocol=group.protocol, assignment=assignment)


def heartbeat(group: ClassicGroup, identity: MemberId, generation: int, turn: GroupTurn) -> None:
    member = group.find(identity)
    group.require_generation(generation)
    group.restart_session(member, turn)
    if group.state is State.PREPARING:
        raise RebalanceInProgress(f"Group {group.id} is rebalancing.")


def leave(group: ClassicGroup, identity: MemberId, turn: GroupTurn) -> None:
    """Remove a member. An administrator may name a static member by its instance id alone."""
    if identity.instance_id is not None:
        known = group.static_members.get(identity.instance_id)
        if known is None:
            raise UnknownMember(f"Instance id {identity.instance_id} is not in group {group.id}.")
        if identity.member_id not in ("", known):
            raise FencedInstance(f"Instance id {identity.instance_id} of group {group.id} belongs to member {known}.")
        remove_member(group, group.members[known], turn)
    elif identity.member_id in group.pending:
        del group.pending[identity.member_id]
        turn.alarms.cancel(group.session_alarm(identity.member_id))
        complete_if_all_joined(group, turn)
    else:
        remove_member(group, group.find(identity), turn)
