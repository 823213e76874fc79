"""JoinGroup of a classic group: which clients are in the next generation.

A new member gets an id from the coordinator. If its version of JoinGroup allows it, the client must join a second time
with that id before it is a member (KIP-394): otherwise a client that times out and retries would leave members without
a process behind. A static member is identified by its instance id: a client that joins with that id replaces the
previous member, which is fenced.
"""

from typing import Final

from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.member import ClassicMember, size_of
from tailrace.groups.classic.rebalance import prepare_or_complete
from tailrace.groups.classic.states import Cause, State
from tailrace.groups.requests import JoinAnswer, JoinRequest, Ticket
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import (
    FencedInstance,
    GroupFull,
    InconsistentProtocol,
    InvalidSessionTimeout,
    MemberIdRequired,
    RebalanceInProgress,
)
from tailrace.model.limits import GROUP_PENDING_MEMBERS_MAX, GROUP_PROTOCOLS_MAX, GROUP_SUBSCRIPTIONS_MAX_BYTES

NEW_MEMBER_TIMEOUT_MS: Final = 300_000  # a new member that waits longer for its first generation is removed


def join(group: ClassicGroup, request: JoinRequest, ticket: Ticket, new_id: str, turn: GroupTurn) -> None:
    """`new_id` becomes the member's id if the request has none."""
    _check(group, request, turn)
    identity = request.identity
    if identity.member_id:
        if identity.member_id in group.pending and identity.instance_id is None:
            _add(group, identity.member_id, request, ticket, turn)
        else:
            _rejoin(group, group.find(identity), request, ticket, turn)
    elif identity.instance_id is not None and identity.instance_id in group.static_members:
        _replace_static(group, group.members[group.static_members[identity.instance_id]], new_id, request, ticket, turn)
    elif identity.instance_id is None and request.id_required:
        group.pending[new_id] = None
        turn.alarm(group.session_alarm(new_id), request.session_timeout_ms)
        turn.answer(ticket, MemberIdRequired(f"Join again with member id {new_id}.", new_id))
    else:
        _add(group, new_id, request, ticket, turn)


def check_member(request: JoinRequest, turn: GroupTurn) -> None:
    """Checks of a member of the classic protocol, in a group of either kind."""
    rules = turn.rules
    if not rules.min_session_timeout_ms <= request.session_timeout_ms <= rules.max_session_timeout_ms:
        raise InvalidSessionTimeout(
            f"Session timeout of {request.session_timeout_ms} ms; group.min.session.timeout.ms is "
            f"{rules.min_session_timeout_ms}, group.max.session.timeout.ms is {rules.max_session_timeout_ms}."
        )
    if len(request.protocols) > GROUP_PROTOCOLS_MAX:
        raise InconsistentProtocol(f"Member has {len(request.protocols)} protocols; {GROUP_PROTOCOLS_MAX} are allowed.")


def _check(group: ClassicGroup, request: JoinRequest, turn: GroupTurn) -> None:
    max_size = turn.rules.max_size
    check_member(request, turn)
    if _is_full(group, request, max_size):
        raise GroupFull(f"Group {group.id} has {len(group.members)} members; group.max.size is {max_size}.")
    size = sum(one.size_bytes for one in group.members.values()) + size_of(request.protocols)
    if size > GROUP_SUBSCRIPTIONS_MAX_BYTES:
        raise GroupFull(
            f"Subscriptions of group {group.id} take {size} bytes; {GROUP_SUBSCRIPTIONS_MAX_BYTES} are allowed."
        )
    if not (request.protocol_type and request.protocols):
        raise InconsistentProtocol("Protocol type and protocols can't be empty.")
    if not group.supports(request.protocol_type, request.protocols):
        raise InconsistentProtocol(
            f"Group {group.id} uses {group.protocol_type} ({group.protocol}); "
            f"{request.protocol_type} ({', '.join(request.protocols)}) is incompatible."
        )


def _is_full(group: ClassicGroup, request: JoinRequest, max_size: int) -> bool:
    """If `group.max.size` was lowered below the number of members, the first members to rejoin stay."""
    identity = request.identity
    known = group.members.get(identity.member_id or group.static_members.get(identity.instance_id or "", ""))
    if group.state is State.PREPARING:
        waiting = sum(one.joining is not None for one in group.members.values())
        return (known is None or known.joining is None) and waiting >= max_size
    too_many_pending = len(group.pending) >= GROUP_PENDING_MEMBERS_MAX and identity.member_id not in group.pending
    return known is None and (len(group.members) >= max_size or too_many_pending)


def _add(group: ClassicGroup, member_id: str, request: JoinRequest, ticket: Ticket, turn: GroupTurn) -> None:
    member = ClassicMember.of(member_id, request)
    member.joining = ticket
    group.add(member)
    group.protocol_type = request.protocol_type
    group.has_new_members = True
    turn.alarm(group.session_alarm(member.id), NEW_MEMBER_TIMEOUT_MS)
    prepare_or_complete(group, turn)


def _rejoin(group: ClassicGroup, member: ClassicMember, request: JoinRequest, ticket: Ticket, turn: GroupTurn) -> None:
    is_same = member.protocols == request.protocols
    has_joined = group.state is State.COMPLETING or (group.state is State.STABLE and member.id != group.leader)
    if has_joined and is_same:  # the answer to its first JoinGroup was lost
        group.restart_session(member, turn)
        turn.answer(ticket, group.join_answer(member))
        return
    member.update(request)
    turn.answer(member.joining, RebalanceInProgress(f"Member {member.id} has sent another JoinGroup."))
    member.joining = ticket
    prepare_or_complete(group, turn)


def _replace_static(
    group: ClassicGroup, member: ClassicMember, new_id: str, request: JoinRequest, ticket: Ticket, turn: GroupTurn
) -> None:
    """A static member rejoins under a new member id; the process with the previous id is fenced."""
    fenced = FencedInstance(f"Instance id {member.instance_id} of group {group.id} belongs to member {new_id}.")
    turn.answer(member.joining, fenced)
    turn.answer(member.syncing, fenced)
    member.joining = member.syncing = None
    old_id = member.id
    _rename(group, member, new_id, turn)
    member.update(request)
    member.is_new = False  # so that the session alarm does not remove it while it waits
    group.restart_session(member, turn)
    if group.state is State.STABLE and group.select_protocol() == group.protocol:
        group.move(Cause.RENAMED, turn)
        turn.records.append(group.entry({one.id: one.assignment for one in group.members.values()}, turn.wall_ms))
        turn.answer(ticket, _unchanged_generation(group, member, old_id, request))
        return
    member.joining = ticket
    prepare_or_complete(group, turn)


def _rename(group: ClassicGroup, member: ClassicMember, new_id: str, turn: GroupTurn) -> None:
    old_id = member.id
    turn.alarms.cancel(group.session_alarm(old_id))
    group.members = {new_id if member_id == old_id else member_id: one for member_id, one in group.members.items()}
    member.id = new_id
    group.static_members[member.instance_id or ""] = new_id
    if group.leader == old_id:
        group.leader = new_id
    if group.unsynced.pop(old_id, old_id) is None:
        group.unsynced[new_id] = None


def _unchanged_generation(group: ClassicGroup, member: ClassicMember, old_id: str, request: JoinRequest) -> JoinAnswer:
    """The generation continues without a rebalance, so the leader must not compute an assignment.

    `skip_assignment` says so; a leader that does not know this field gets its old id as the leader's, and so fetches
    its assignment like any follower."""
    is_leader = group.leader == member.id
    return JoinAnswer(
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=old_id if is_leader and not request.may_skip_assignment else group.leader or "",
        member_id=member.id,
        members=group.joined_members() if is_leader and request.may_skip_assignment else (),
        skip_assignment=is_leader and request.may_skip_assignment,
    )
