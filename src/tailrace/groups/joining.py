"""JoinGroup: who may be in the next generation.

A new member gets an id. If it can, it has to come back with it before it counts: a client that gives up and tries again
would otherwise leave members behind that nobody speaks for. A static member is known by its instance id: whoever
comes with that replaces who came before, who is fenced.
"""

from typing import Final

from tailrace.groups.group import ClassicGroup
from tailrace.groups.member import ClassicMember, size_of
from tailrace.groups.rebalance import prepare_or_complete
from tailrace.groups.requests import Joined, Joining, Ticket
from tailrace.groups.states import Cause, State
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

NEW_MEMBER_TIMEOUT_MS: Final = 300_000  # a client that waits longer for its first generation is taken for gone


def join(group: ClassicGroup, wanted: Joining, ticket: Ticket, new_id: str, turn: GroupTurn) -> None:
    """`new_id` is the member's, if it needs one."""
    _check(group, wanted, turn)
    who = wanted.who
    if who.member_id:
        if who.member_id in group.pending and who.instance_id is None:
            _add(group, who.member_id, wanted, ticket, turn)
        else:
            _join_again(group, group.find(who), wanted, ticket, turn)
    elif who.instance_id is not None and who.instance_id in group.static:
        _replace(group, group.members[group.static[who.instance_id]], new_id, wanted, ticket, turn)
    elif who.instance_id is None and wanted.id_required:
        group.pending[new_id] = None
        turn.alarm(group.session_of(new_id), wanted.session_timeout_ms)
        turn.answer(ticket, MemberIdRequired(f"come back as {new_id}", new_id))
    else:
        _add(group, new_id, wanted, ticket, turn)


def check_member(wanted: Joining, turn: GroupTurn) -> None:
    """What holds for members of the classic protocol in groups of either kind."""
    rules = turn.rules
    if not rules.min_session_timeout_ms <= wanted.session_timeout_ms <= rules.max_session_timeout_ms:
        raise InvalidSessionTimeout(
            f"a session of {wanted.session_timeout_ms} ms; group.min.session.timeout.ms is "
            f"{rules.min_session_timeout_ms}, group.max.session.timeout.ms {rules.max_session_timeout_ms}"
        )
    if len(wanted.protocols) > GROUP_PROTOCOLS_MAX:
        raise InconsistentProtocol(
            f"a member with {len(wanted.protocols)} protocols, of {GROUP_PROTOCOLS_MAX} that are allowed: "
            "name only assignors that it has"
        )


def _check(group: ClassicGroup, wanted: Joining, turn: GroupTurn) -> None:
    rules = turn.rules
    check_member(wanted, turn)
    if _is_full(group, wanted, rules.max_size):
        raise GroupFull(f"group {group.id} has {len(group.members)} members, group.max.size is {rules.max_size}")
    size = sum(one.size_bytes for one in group.members.values()) + size_of(wanted.protocols)
    if size > GROUP_SUBSCRIPTIONS_MAX_BYTES:
        raise GroupFull(f"group {group.id}: the subscriptions of its members have {size} bytes")
    if not (wanted.protocol_type and wanted.protocols):
        raise InconsistentProtocol("a member must say how work can be shared with it")
    if not group.may_join(wanted.protocol_type, wanted.protocols):
        raise InconsistentProtocol(
            f"group {group.id} is shared out by {group.protocol_type} ({group.protocol}), "
            f"which {wanted.protocol_type} ({', '.join(wanted.protocols)}) does not fit"
        )


def _is_full(group: ClassicGroup, wanted: Joining, max_size: int) -> bool:
    """Where more are in it than may be, because the bound was lowered, the first to join again stay."""
    who = wanted.who
    known = group.members.get(who.member_id or group.static.get(who.instance_id or "", ""))
    if group.state is State.PREPARING:
        waiting = sum(one.joining is not None for one in group.members.values())
        return (known is None or known.joining is None) and waiting >= max_size
    too_many_pending = len(group.pending) >= GROUP_PENDING_MEMBERS_MAX and who.member_id not in group.pending
    return known is None and (len(group.members) >= max_size or too_many_pending)


def _add(group: ClassicGroup, member_id: str, wanted: Joining, ticket: Ticket, turn: GroupTurn) -> None:
    member = ClassicMember.of(member_id, wanted)
    member.joining = ticket
    group.add(member)
    group.protocol_type = wanted.protocol_type
    group.has_newcomers = True
    turn.alarm(group.session_of(member.id), NEW_MEMBER_TIMEOUT_MS)
    prepare_or_complete(group, turn)


def _join_again(group: ClassicGroup, member: ClassicMember, wanted: Joining, ticket: Ticket, turn: GroupTurn) -> None:
    same = member.protocols == wanted.protocols
    settled = group.state is State.COMPLETING or (group.state is State.STABLE and member.id != group.leader)
    if settled and same:  # its answer was lost
        group.hear(member, turn)
        turn.answer(ticket, group.joined(member))
        return
    member.renew(wanted)
    _wait(group, member, ticket, turn)
    prepare_or_complete(group, turn)


def _wait(group: ClassicGroup, member: ClassicMember, ticket: Ticket, turn: GroupTurn) -> None:
    turn.answer(member.joining, RebalanceInProgress(f"{member.id} has joined once more"))
    member.joining = ticket


def _replace(
    group: ClassicGroup, member: ClassicMember, new_id: str, wanted: Joining, ticket: Ticket, turn: GroupTurn
) -> None:
    """A static member comes back under another id, and takes the place of the one before."""
    fenced = FencedInstance(f"{member.instance_id} of group {group.id} is another client by now")
    turn.answer(member.joining, fenced)
    turn.answer(member.syncing, fenced)
    member.joining = member.syncing = None
    old_id = member.id
    _rename(group, member, new_id, turn)
    member.renew(wanted)
    member.is_new = False  # it is not taken for gone while it waits
    group.hear(member, turn)
    if group.state is State.STABLE and group.best_protocol() == group.protocol:
        group.move(Cause.RENAMED, turn)
        turn.records.append(group.entry({one.id: one.assignment for one in group.members.values()}, turn.wall_ms))
        turn.answer(ticket, _as_it_was(group, member, old_id, wanted))
        return
    member.joining = ticket
    prepare_or_complete(group, turn)


def _rename(group: ClassicGroup, member: ClassicMember, new_id: str, turn: GroupTurn) -> None:
    old_id = member.id
    turn.alarms.cancel(group.session_of(old_id))
    group.members = {new_id if one == old_id else one: it for one, it in group.members.items()}
    member.id = new_id
    group.static[member.instance_id or ""] = new_id
    if group.leader == old_id:
        group.leader = new_id
    if group.unsynced.pop(old_id, old_id) is None:
        group.unsynced[new_id] = None


def _as_it_was(group: ClassicGroup, member: ClassicMember, old_id: str, wanted: Joining) -> Joined:
    """The generation goes on. A leader must not share out again; one that cannot be told so is told that another leads,
    and asks for its part like everybody."""
    leads = group.leader == member.id
    return Joined(
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=old_id if leads and not wanted.may_skip_assignment else group.leader or "",
        member_id=member.id,
        members=group.roll() if leads and wanted.may_skip_assignment else (),
        skip_assignment=leads and wanted.may_skip_assignment,
    )
