"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup and Heartbeat, translated to KIP-848.

A JoinGroup is a full heartbeat: it is answered at once, and the generation has no leader. SyncGroup returns the
member's current assignment; the generation is the member's epoch. When the target assignment asks something of the
member, its Heartbeat is answered with REBALANCE_IN_PROGRESS and it joins again. A member that does not join or sync
within its rebalance timeout is removed.
"""

from tailrace.groups.classic.member import ClassicMember
from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.heartbeat import find_member, replace_static_member, update_member
from tailrace.groups.consumer.member import ConsumerMember, Profile
from tailrace.groups.consumer.reconciling import reconcile
from tailrace.groups.consumer.records import ClassicMemberMetadata, ClassicProtocol
from tailrace.groups.consumer.states import MemberState
from tailrace.groups.consumer.target_assignment import update_target
from tailrace.groups.consumer_protocol import (
    CONSUMER_PROTOCOL,
    ConsumerProtocolSubscription,
    decode_subscription,
    encode_assignment,
    resolve_partitions,
)
from tailrace.groups.requests import JoinAnswer, JoinRequest, MemberId, SyncAnswer, SyncRequest, Ticket
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import (
    FencedInstance,
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)


def join(group: ConsumerGroup, request: JoinRequest, ticket: Ticket, new_id: str, turn: GroupTurn) -> None:
    _check_protocols(group, request)
    subscription = decode_subscription(next(iter(request.protocols.values())))
    before = _previous_member(group, request.identity)
    max_size = turn.rules.consumer_max_size
    if before is None and len(group.members) >= max_size:
        raise GroupFull(f"Group {group.id} has {len(group.members)} members; group.consumer.max.size is {max_size}.")
    member_id = request.identity.member_id or new_id
    if not request.identity.member_id and request.identity.instance_id is None and request.id_required:
        turn.answer(ticket, MemberIdRequired(f"Join again with member id {new_id}.", new_id))
        return
    draft = Draft(group, turn)
    if before is not None and before.id != member_id:
        replace_static_member(draft, before, member_id)
    profile = classic_profile(request, request.identity.instance_id, subscription)
    update_member(draft, member_id, profile, may_match=False)
    update_target(draft)
    reconcile(draft, member_id, resolve_partitions(subscription.owned_partitions, turn.topics), is_sure=True)
    group.adopt_topics_revision(draft.group)
    member = draft.member(member_id)
    group.must_rejoin.pop(member_id, None)
    group.restart_session(member, turn)
    turn.alarms.cancel(group.join_alarm(member_id))
    turn.alarm(group.sync_alarm(member_id), member.profile.rebalance_timeout_ms)
    turn.answer(
        ticket,
        JoinAnswer(
            generation=member.current.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol=_protocol(member),
            leader="",
            member_id=member_id,
        ),
    )


def _check_protocols(group: ConsumerGroup, request: JoinRequest) -> None:
    metadata = [one.profile.classic_member_metadata for one in group.members.values()]
    supported = [{protocol.name: None for protocol in one.supported_protocols} for one in metadata if one is not None]
    has_common = any(all(name in names for names in supported) for name in request.protocols)
    if request.protocol_type != CONSUMER_PROTOCOL or not has_common:
        raise InconsistentProtocol(
            f"Group {group.id} uses protocol type {CONSUMER_PROTOCOL}; "
            f"{request.protocol_type} ({', '.join(request.protocols)}) is incompatible."
        )


def _previous_member(group: ConsumerGroup, identity: MemberId) -> ConsumerMember | None:
    """The member that joins again or is replaced; None: it is new."""
    if identity.instance_id is None:
        return group.members.get(identity.member_id)
    known = group.static_members.get(identity.instance_id)
    if identity.member_id and known is None:
        raise UnknownMember(f"Instance id {identity.instance_id} is not in group {group.id}.")
    if identity.member_id and known != identity.member_id:
        raise FencedInstance(f"Instance id {identity.instance_id} of group {group.id} belongs to member {known}.")
    return group.members.get(known or "")


def classic_profile(
    member: JoinRequest | ClassicMember, instance_id: str | None, subscription: ConsumerProtocolSubscription
) -> Profile:
    """The profile of a member that joins with the classic protocol, or has joined with it."""
    return Profile(
        instance_id=instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(dict.fromkeys(subscription.topics))),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols.items()
            ),
        ),
    )


def sync(group: ConsumerGroup, request: SyncRequest, ticket: Ticket, turn: GroupTurn) -> None:
    member = _member_in_generation(group, request.identity, request.generation)
    classic = member.profile.classic_member_metadata
    assert classic is not None, "a member found in its generation uses the classic protocol"
    for requested, actual in ((request.protocol_type, CONSUMER_PROTOCOL), (request.protocol, _protocol(member))):
        if requested is not None and requested != actual:
            raise InconsistentProtocol(
                f"Member {member.id} of group {group.id} uses protocol {actual}, not {requested}."
            )
    if group.epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED:
        raise _require_rejoin(group, member, turn)
    turn.alarms.cancel(group.sync_alarm(member.id))
    group.restart_session(member, turn)
    assignment = encode_assignment(member.current.assigned, turn.topics, classic.supported_protocols[0].metadata)
    turn.answer(ticket, SyncAnswer(protocol_type=CONSUMER_PROTOCOL, protocol=_protocol(member), assignment=assignment))


def heartbeat(group: ConsumerGroup, identity: MemberId, generation: int, turn: GroupTurn) -> None:
    member = _member_in_generation(group, identity, generation)
    group.restart_session(member, turn)
    current = member.current
    may_get_more = current.state is MemberState.UNRELEASED and not _waits_for_others(group, member)
    if current.epoch < group.epoch or current.state is MemberState.UNREVOKED or may_get_more:
        raise _require_rejoin(group, member, turn)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(group.owners.get(one, member.id) != member.id for one in group.target.get(member.id, ()))


def _require_rejoin(group: ConsumerGroup, member: ConsumerMember, turn: GroupTurn) -> RebalanceInProgress:
    """The time within which the member must rejoin starts with the first such answer."""
    if member.id not in group.must_rejoin:
        group.must_rejoin[member.id] = None
        turn.alarm(group.join_alarm(member.id), member.profile.rebalance_timeout_ms)
    return RebalanceInProgress(f"Member {member.id} must rejoin group {group.id}.")


def _member_in_generation(group: ConsumerGroup, identity: MemberId, generation: int) -> ConsumerMember:
    member = find_classic(group, identity)
    if generation != member.current.epoch:
        epoch = member.current.epoch
        raise IllegalGeneration(f"Member {member.id} of group {group.id} is in generation {epoch}, not {generation}.")
    return member


def find_classic(group: ConsumerGroup, identity: MemberId) -> ConsumerMember:
    """A member of the classic protocol; a static one may be identified by its instance id alone."""
    known = group.static_members.get(identity.instance_id or "")
    if known is not None and not identity.member_id:
        identity = MemberId(known, identity.instance_id)
    member = find_member(group, identity)
    if not member.is_classic:
        raise UnknownMember(f"Member {member.id} of group {group.id} does not use the classic protocol.")
    return member


def _protocol(member: ConsumerMember) -> str:
    """The protocol that the member prefers. Any would do: no client computes an assignment in a consumer group."""
    classic = member.profile.classic_member_metadata
    return "" if classic is None else classic.supported_protocols[0].name
