"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup and Heartbeat, translated.

A JoinGroup is a heartbeat that says all: it is answered at once, and nobody leads. SyncGroup tells what the member has;
its generation is the member's epoch. When there is something to do for it, the answer to its Heartbeat makes it join
again. It must join and sync in time, or it is out.
"""

from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.embedded import assignment, partitions_of, subscription_of
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.heartbeat import find, take_the_place_of, update
from tailrace.groups.consumer.member import ConsumerMember, Profile
from tailrace.groups.consumer.reconciling import reconcile
from tailrace.groups.consumer.records import ClassicMemberMetadata, ClassicProtocol
from tailrace.groups.consumer.states import MemberState
from tailrace.groups.consumer.subscribing import retarget
from tailrace.groups.requests import Joined, Joining, MemberId, Synced, Syncing, Ticket
from tailrace.groups.subscription import CONSUMER_PROTOCOL
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


def join(group: ConsumerGroup, wanted: Joining, ticket: Ticket, new_id: str, turn: GroupTurn) -> None:
    _check_protocols(group, wanted)
    subscription = subscription_of(next(iter(wanted.protocols.values())))
    before = _before(group, wanted.who)
    if before is None and len(group.members) >= turn.rules.consumer_max_size:
        raise GroupFull(f"group {group.id} has {len(group.members)} members; see group.consumer.max.size")
    member_id = wanted.who.member_id or new_id
    if not wanted.who.member_id and wanted.who.instance_id is None and wanted.id_required:
        turn.answer(ticket, MemberIdRequired(f"come back as {new_id}", new_id))
        return
    draft = Draft(group, turn)
    if before is not None and before.id != member_id:
        take_the_place_of(draft, before, member_id)
    update(draft, member_id, _profile(wanted, subscription.topics, subscription.rack_id), tries=False)
    retarget(draft)
    reconcile(draft, member_id, partitions_of(subscription.owned_partitions, turn.topics), is_sure=True)
    group.has_looked(draft.group)
    member = draft.member(member_id)
    group.called.pop(member_id, None)
    group.hear(member, turn)
    turn.alarms.cancel(group.join_of(member_id))
    turn.alarm(group.sync_of(member_id), member.profile.rebalance_timeout_ms)
    turn.answer(
        ticket,
        Joined(
            generation=member.standing.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol=_protocol(member),
            leader="",
            member_id=member_id,
        ),
    )


def _check_protocols(group: ConsumerGroup, wanted: Joining) -> None:
    known = [one.profile.classic_member_metadata for one in group.members.values()]
    classic = [{way.name: None for way in one.supported_protocols} for one in known if one is not None]
    fits = any(all(name in names for names in classic) for name in wanted.protocols)
    if wanted.protocol_type != CONSUMER_PROTOCOL or not fits:
        raise InconsistentProtocol(f"group {group.id} is shared out by consumers, in no way that this member knows")


def _before(group: ConsumerGroup, who: MemberId) -> ConsumerMember | None:
    """Who this was until now; None: it is new."""
    if who.instance_id is None:
        return group.members.get(who.member_id)
    known = group.static.get(who.instance_id)
    if who.member_id and known is None:
        raise UnknownMember(f"{who.instance_id} is not in group {group.id}")
    if who.member_id and known != who.member_id:
        raise FencedInstance(f"{who.instance_id} of group {group.id} is another client by now")
    return group.members.get(known or "")


def _profile(wanted: Joining, topics: tuple[str, ...], rack_id: str | None) -> Profile:
    return Profile(
        instance_id=wanted.who.instance_id,
        rack_id=rack_id,
        client_id=wanted.client_id,
        client_host=wanted.client_host,
        subscribed_topic_names=tuple(sorted(dict.fromkeys(topics))),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=wanted.rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=wanted.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in wanted.protocols.items()
            ),
        ),
    )


def sync(group: ConsumerGroup, wanted: Syncing, ticket: Ticket, turn: GroupTurn) -> None:
    member = _in_generation(group, wanted.who, wanted.generation)
    classic = member.profile.classic_member_metadata
    assert classic is not None, "it is a classic one"
    for said, is_so in ((wanted.protocol_type, CONSUMER_PROTOCOL), (wanted.protocol, _protocol(member))):
        if said is not None and said != is_so:
            raise InconsistentProtocol(f"{member.id} of group {group.id} joined by {is_so}, not {said}")
    if group.epoch > member.standing.epoch and member.standing.state is not MemberState.UNREVOKED:
        raise _call(group, member, turn)
    turn.alarms.cancel(group.sync_of(member.id))
    group.hear(member, turn)
    part = assignment(member.standing.assigned, turn.topics, classic.supported_protocols[0].metadata)
    turn.answer(ticket, Synced(protocol_type=CONSUMER_PROTOCOL, protocol=_protocol(member), assignment=part))


def heartbeat(group: ConsumerGroup, who: MemberId, generation: int, turn: GroupTurn) -> None:
    member = _in_generation(group, who, generation)
    group.hear(member, turn)
    standing = member.standing
    may_get_more = standing.state is MemberState.UNRELEASED and not _waits_for_others(group, member)
    if standing.epoch < group.epoch or standing.state is MemberState.UNREVOKED or may_get_more:
        raise _call(group, member, turn)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(group.owners.get(one, member.id) != member.id for one in group.target.get(member.id, ()))


def _call(group: ConsumerGroup, member: ConsumerMember, turn: GroupTurn) -> RebalanceInProgress:
    """A member must join again, from the first time on that it is told so."""
    if member.id not in group.called:
        group.called[member.id] = None
        turn.alarm(group.join_of(member.id), member.profile.rebalance_timeout_ms)
    return RebalanceInProgress(f"{member.id} must join group {group.id} again")


def _in_generation(group: ConsumerGroup, who: MemberId, generation: int) -> ConsumerMember:
    member = find_classic(group, who)
    if generation != member.standing.epoch:
        epoch = member.standing.epoch
        raise IllegalGeneration(f"{member.id} of group {group.id} is in generation {epoch}, not {generation}")
    return member


def find_classic(group: ConsumerGroup, who: MemberId) -> ConsumerMember:
    """A member of the classic protocol; a static one may be named by its instance id alone."""
    known = group.static.get(who.instance_id or "")
    member = find(group, MemberId(known, who.instance_id) if known is not None and not who.member_id else who)
    if not member.is_classic:
        raise UnknownMember(f"{member.id} of group {group.id} does not speak the classic protocol")
    return member


def _protocol(member: ConsumerMember) -> str:
    """The way of sharing that the member likes best: nobody shares out, so all are the same."""
    classic = member.profile.classic_member_metadata
    return "" if classic is None else classic.supported_protocols[0].name
