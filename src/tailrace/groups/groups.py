"""The coordinator of the groups in one partition of `__consumer_offsets`, as a state machine without I/O.

Each request is a method call with a `GroupTurn`, which collects the records to append and the answers to give. A
refused request raises a fault and changes nothing. Whatever is in the log changes by `replay` only: committed offsets,
the generation of a classic group, everything of a consumer group or share group. The rest (waiting requests, alarms) is
known to the active coordinator alone.

The driver must keep this order: append the turn's records, replay them, and give the answers when the records are
committed. If the append fails, it discards the machine and rebuilds it from the log.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tailrace.groups import migration, offsets
from tailrace.groups.any_group import (
    OffsetsGroup,
    check_committer,
    check_epoch,
    check_generation,
    require_consumer_group,
    require_offsets_group,
)
from tailrace.groups.classic import joining, rebalance, syncing
from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.states import Cause, State
from tailrace.groups.consumer import classic_members, heartbeat, leaving
from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.expressions import KnownMatches
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import STATIC_LEAVE_EPOCH
from tailrace.groups.consumer.requests import JOIN_EPOCH, Heartbeat, HeartbeatAnswer, check_heartbeat
from tailrace.groups.consumer.target_assignment import names_to_match
from tailrace.groups.offsets import Committed
from tailrace.groups.records import Entry, GroupMetadataKey
from tailrace.groups.requests import JoinRequest, MemberId, SyncRequest, Ticket
from tailrace.groups.share import initializing
from tailrace.groups.share import leaving as share_leaving
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share_groups import ShareGroups
from tailrace.groups.topics import Topics
from tailrace.groups.turn import Alarm, GroupTurn
from tailrace.model.alarms import Alarms
from tailrace.model.faults import (
    Fault,
    GroupNotFound,
    IllegalGeneration,
    InconsistentProtocol,
    InvalidGroupId,
    InvalidRequest,
    NonEmptyGroup,
    RebalanceInProgress,
    SubscribedToTopic,
    UnknownMember,
)
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction

K = TypeVar("K", ClassicGroup, ConsumerGroup, ShareGroup)


class Groups(ShareGroups):
    def __init__(self) -> None:
        super().__init__()
        self.alarms: Alarms[Alarm] = Alarms()

    def serve(self, turn: GroupTurn) -> None:
        """Become active after the log is loaded: every member's session timeout starts over."""
        self._is_active = True
        for group_id in self.offsets:
            self._group(group_id)
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                leaving.start_alarms(group, turn)
                continue
            if isinstance(group, ShareGroup):
                self._serve_share_group(group, turn)
                continue
            for member in group.members.values():
                group.restart_session(member, turn)
            if len(group.members) > turn.rules.max_size:
                rebalance.prepare_rebalance(group, turn)

    # Members of the classic protocol

    def join(self, group_id: str, request: JoinRequest, ticket: Ticket, new_id: str, turn: GroupTurn) -> None:
        _check_group_id(group_id)
        known = self.groups.get(group_id)
        if known is None and request.identity.member_id:
            raise _unknown_group(group_id, request.identity)
        if isinstance(known, ShareGroup):
            raise InconsistentProtocol(
                f"Group {group_id} is a share group: use the share protocol, or another group id."
            )
        if isinstance(known, ConsumerGroup) and not known.is_empty:
            joining.check_member(request, turn)
            classic_members.join(known, request, ticket, new_id, turn)
            return
        group = known if isinstance(known, ClassicGroup) else ClassicGroup(group_id)
        joining.join(group, request, ticket, new_id, turn)
        if isinstance(known, ConsumerGroup):
            Draft(known, turn).delete_group()
        self.groups[group_id] = group

    def sync(self, group_id: str, request: SyncRequest, ticket: Ticket, turn: GroupTurn) -> None:
        group = self._group_of(group_id, request.identity)
        if isinstance(group, ConsumerGroup):
            classic_members.sync(group, request, ticket, turn)
        else:
            syncing.sync(group, request, ticket, turn)

    def heartbeat(self, group_id: str, identity: MemberId, generation: int, turn: GroupTurn) -> None:
        group = self._group_of(group_id, identity)
        if isinstance(group, ConsumerGroup):
            classic_members.heartbeat(group, identity, generation, turn)
        else:
            syncing.heartbeat(group, identity, generation, turn)

    def leave(self, group_id: str, identities: Sequence[MemberId], turn: GroupTurn) -> list[Fault | None]:
        """Returns one result for each member; None: it has left."""
        _check_group_id(group_id)
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._leave_consumer_group(group, identities, turn)
        if isinstance(group, ShareGroup):
            group = None  # it has no members of this protocol
        results: list[Fault | None] = []
        for identity in identities:
            try:
                if group is None:
                    raise _unknown_group(group_id, identity)
                syncing.leave(group, identity, turn)
                self._drop_if_unused(group, turn)
                results.append(None)
            except Fault as fault:
                results.append(fault.with_traceback(None))
        return results

    def _leave_consumer_group(
        self, group: ConsumerGroup, identities: Sequence[MemberId], turn: GroupTurn
    ) -> list[Fault | None]:
        """Remove members of the classic protocol, all in one step: one new epoch, one decision about a downgrade."""
        results: list[Fault | None] = []
        leaving_ids: dict[str, None] = {}
        for identity in identities:
            try:
                leaving_ids[classic_members.find_classic(group, identity).id] = None
                results.append(None)
            except Fault as fault:
                results.append(fault)
        if leaving_ids:
            self._remove_members(group, list(leaving_ids), turn)
        return results

    def _remove_members(self, group: ConsumerGroup, member_ids: list[str], turn: GroupTurn) -> None:
        if migration.must_downgrade(group, member_ids, turn):
            classic = self.groups[group.id] = migration.downgraded(group, member_ids, turn)
            rebalance.prepare_rebalance(classic, turn)
        else:
            leaving.remove_members(group, member_ids, turn)

    def _group_of(self, group_id: str, identity: MemberId) -> OffsetsGroup:
        _check_group_id(group_id)
        group = self.groups.get(group_id)
        if group is None or isinstance(group, ShareGroup):
            raise _unknown_group(group_id, identity)
        return group

    # Members of the consumer protocol (KIP-848)

    def consumer_heartbeat(self, group_id: str, beat: Heartbeat, turn: GroupTurn) -> HeartbeatAnswer:
        """ConsumerGroupHeartbeat: a member joins, stays or leaves."""
        if not group_id:
            raise InvalidRequest("GroupId can't be empty.")
        check_heartbeat(beat, turn.rules.assignors)
        known = self.groups.get(group_id)
        if beat.epoch < 0:
            return self._consumer_leave(require_consumer_group(known, group_id), beat, turn)
        if isinstance(known, ConsumerGroup) or beat.epoch != JOIN_EPOCH:
            return heartbeat.heartbeat(require_consumer_group(known, group_id), beat, turn)
        if isinstance(known, ShareGroup):
            raise GroupNotFound(f"Group {group_id} is a share group, not a consumer group.")
        if known is None:
            return heartbeat.heartbeat(ConsumerGroup(group_id), beat, turn)
        group, records = migration.upgraded(known, turn)
        answer = heartbeat.heartbeat(group, beat, turn)
        turn.records[:0] = records
        migration.hand_over(known, group, turn)
        return answer

    def names_to_match(
        self, group_id: str, expression: str | None, topics: Topics, known_matches: KnownMatches
    ) -> dict[str, list[str]]:
        """The topic names that a heartbeat with this expression would match, by expression.

        The driver matches them before the turn, in time slices, and passes the results in `GroupTurn.known_matches`."""
        known = self.groups.get(group_id)
        return names_to_match(known if isinstance(known, ConsumerGroup) else None, expression, topics, known_matches)

    def _consumer_leave(self, group: ConsumerGroup, beat: Heartbeat, turn: GroupTurn) -> HeartbeatAnswer:
        member = heartbeat.find_member(group, beat.identity)
        if beat.epoch == STATIC_LEAVE_EPOCH:
            leaving.leave_temporarily(group, member, turn)
        else:
            self._remove_members(group, [member.id], turn)
        return HeartbeatAnswer(member_id=member.id, epoch=beat.epoch)

    # Time

    def ring(self, turn: GroupTurn) -> None:
        """Handle the alarms that are due.

        Expired members of a group are removed in one step: one new epoch, and in a consumer group one decision about a
        downgrade."""
        expired: dict[str, list[str]] = {}
        for alarm in self.alarms.rung(turn.now):
            group = self.groups.get(alarm.group_id)
            if isinstance(group, ClassicGroup):
                self._ring_classic(group, alarm, turn)
            elif isinstance(group, ShareGroup):
                if alarm.member_id in group.members:
                    expired.setdefault(group.id, []).append(alarm.member_id)
            elif group is not None and leaving.removes_member(group, alarm):
                expired.setdefault(group.id, []).append(alarm.member_id)
        for group_id, members in expired.items():
            group, unique = self.groups[group_id], list(dict.fromkeys(members))
            if isinstance(group, ShareGroup):
                share_leaving.remove_members(group, unique, turn)
            else:
                self._remove_members(require_consumer_group(group, group_id), unique, turn)

    def _ring_classic(self, group: ClassicGroup, alarm: Alarm, turn: GroupTurn) -> None:
        match alarm.what:
            case "join":
                rebalance.join_expired(group, turn)
            case "sync":
                rebalance.sync_expired(group, turn)
            case _:
                rebalance.session_expired(group, alarm.member_id, turn)
        self._drop_if_unused(group, turn)

    def _drop_if_unused(self, group: ClassicGroup, turn: GroupTurn) -> None:
        """Drop a group that has no records in the log: it was created for a member that never joined."""
        unused = group.state is State.EMPTY and not group.pending and not group.generation
        if unused and not self.offsets.get(group.id) and not self.pending.places(group.id):
            group.move(Cause.REMOVED, turn)
            del self.groups[group.id]

    # Offsets

    def commit(
        self,
        group_id: str,
        identity: MemberId,
        generation: int,
        wanted: Mapping[PartitionName, Committed],
        turn: GroupTurn,
        *,
        knows_epochs: bool = True,
    ) -> None:
        """OffsetCommit. A generation below 0: the client is not a member.

        In a consumer group the generation is the member's epoch; `knows_epochs`: the request's version has it."""
        group = require_offsets_group(self.groups.get(group_id), group_id)
        if group is None:
            if generation >= 0:
                raise GroupNotFound(f"Group {group_id} not found; commit has generation {generation}.")
        elif isinstance(group, ConsumerGroup):
            check_committer(group, identity.member_id, generation, knows_epochs=knows_epochs)
        elif generation >= 0 or group.state is not State.EMPTY:
            self._check_classic_committer(group, identity, generation, turn)
        turn.records += [offsets.entry(group_id, place, one) for place, one in wanted.items()]

    def _check_classic_committer(
        self, group: ClassicGroup, identity: MemberId, generation: int, turn: GroupTurn
    ) -> None:
        member = group.find(identity)
        group.require_generation(generation)
        if group.state is State.COMPLETING:
            raise RebalanceInProgress(f"Group {group.id} is rebalancing.")
        group.restart_session(member, turn)

    def commit_in_transaction(
        self,
        group_id: str,
        identity: MemberId,
        generation: int,
        producer: tuple[int, int],
        wanted: Mapping[PartitionName, Committed],
        turn: GroupTurn,
    ) -> None:
        """TxnOffsetCommit: offsets that count when the producer's transaction is committed.

        Clients before TxnOffsetCommit version 3 send no member id and no generation, and are not checked."""
        group = require_offsets_group(self.groups.get(group_id), group_id)
        if group is None and generation >= 0:
            raise IllegalGeneration(f"Group {group_id} not found; commit has generation {generation}.")
        is_identified = generation >= 0 or identity.member_id or identity.instance_id is not None
        if group is not None and is_identified and (generation >= 0 or not group.is_empty):
            check_generation(group, identity, generation)
        turn.records += [InTransaction(*producer, offsets.entry(group_id, place, one)) for place, one in wanted.items()]

    def check_offset_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """OffsetFetch by a member of a consumer group needs its current epoch."""
        group = require_offsets_group(self.groups.get(group_id), group_id)
        if isinstance(group, ConsumerGroup) and not (member_id is None and epoch < 0):
            check_epoch(group, member_id or "", epoch)

    def delete_offsets(self, group_id: str, places: Sequence[PartitionName], turn: GroupTurn) -> list[Fault | None]:
        """OffsetDelete, for topics that the group is not subscribed to; returns one result for each partition."""
        _check_group_id(group_id)
        group = require_offsets_group(self.find(group_id), group_id)
        assert group is not None
        subscribed = group.subscribed if group.members else frozenset()
        if subscribed is None:
            raise NonEmptyGroup(f"Group {group_id} has members whose subscriptions are unknown.")
        known = self._places(group_id)
        results: list[Fault | None] = []
        for place in places:
            if place.topic in subscribed:
                results.append(SubscribedToTopic(f"Group {group_id} is subscribed to topic {place.topic}."))
                continue
            results.append(None)
            if place in known:
                turn.records.append(offsets.entry(group_id, place, None))
        return results

    def _places(self, group_id: str) -> dict[PartitionName, None]:
        """The partitions with a committed or a pending offset."""
        return dict.fromkeys(self.committed(group_id)) | self.pending.places(group_id)

    # Groups as a whole

    def find_kind(self, group_id: str, kind: type[K]) -> K:
        group = self.find(group_id)
        if not isinstance(group, kind):
            raise GroupNotFound(f"Group {group_id} is not a {kind.kind} group.")
        return group

    def delete(self, group_id: str, turn: GroupTurn) -> None:
        """DeleteGroups: delete a group without members, and its offsets."""
        group = self.find(group_id)
        if not group.is_empty:
            raise NonEmptyGroup(f"Group {group_id} is not empty.")
        if isinstance(group, ShareGroup):
            self._delete_share_group(group, turn)
        else:
            self._delete(group, turn)

    def _delete(self, group: OffsetsGroup, turn: GroupTurn) -> None:
        turn.records += [offsets.entry(group.id, place, None) for place in self._places(group.id)]
        if isinstance(group, ConsumerGroup):
            Draft(group, turn).delete_group()
            return
        turn.records.append(Entry(GroupMetadataKey(group=group.id), None))
        for pending in group.pending:
            turn.alarms.cancel(group.session_alarm(pending))
        group.move(Cause.REMOVED, turn)

    def expire(self, group_ids: Sequence[str], turn: GroupTurn) -> None:
        """Delete expired offsets, offsets and share state of deleted topics, and groups that have nothing left.

        A share group does not expire: it has state of its partitions, and that is kept until the group is deleted."""
        retention_ms = turn.rules.offsets_retention_ms
        for group in [self.groups[one] for one in group_ids if one in self.groups]:
            if isinstance(group, ShareGroup):
                initializing.forget_deleted_topics(group, turn)
                continue
            committed = self.committed(group.id)
            expired = {place: None for place, one in committed.items() if self.is_of_deleted_topic(place, one)}
            expired |= dict.fromkeys(offsets.expired(group, committed, turn.wall_ms, retention_ms))
            pending = self.pending.places(group.id)  # a tombstone would drop the pending offset too, so these wait
            expired = {place: None for place in expired if place not in pending}
            nothing_left = len(expired) == len(committed) and not pending
            if nothing_left and (group.is_expired(turn.wall_ms, retention_ms) or (expired and group.is_unused)):
                self._delete(group, turn)
            else:
                turn.records += [offsets.entry(group.id, place, None) for place in expired]


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupId("GroupId can't be empty.")


def _unknown_group(group_id: str, identity: MemberId) -> UnknownMember:
    return UnknownMember(f"Member {identity} is unknown: group {group_id} not found.")
