"""The groups whose state is kept in one partition of `__consumer_offsets`: the machine that its leader runs.

Requests come as calls with a `GroupTurn`, which gathers the records to append and the answers to give. A refusal is
raised, and then nothing has changed. `replay` alone changes what is in the log: offsets, and which generation stands.
The order that the shell must keep: append, replay, and answer when committed; drop the machine if the append fails.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tailrace.groups import joining, kinds, migration, offsets, rebalance, syncing
from tailrace.groups.alarms import Alarm
from tailrace.groups.consumer import classic_members, heartbeat, leaving
from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.expressions import Tried
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import AWAY
from tailrace.groups.consumer.requests import JOINING as JOINING_EPOCH
from tailrace.groups.consumer.requests import Heartbeat, HeartbeatAnswer, check
from tailrace.groups.consumer.subscribing import untried
from tailrace.groups.group import ClassicGroup
from tailrace.groups.kept import KeptGroups
from tailrace.groups.kinds import AnyGroup
from tailrace.groups.offsets import Committed
from tailrace.groups.records import Entry, GroupMetadataKey
from tailrace.groups.requests import Joining, MemberId, Syncing, Ticket
from tailrace.groups.states import Cause, State
from tailrace.groups.topics import Topics
from tailrace.groups.turn import GroupTurn
from tailrace.model.alarms import Alarms
from tailrace.model.faults import (
    Fault,
    GroupNotFound,
    IllegalGeneration,
    InvalidGroupId,
    InvalidRequest,
    NonEmptyGroup,
    RebalanceInProgress,
    SubscribedToTopic,
    UnknownMember,
)
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction

K = TypeVar("K", ClassicGroup, ConsumerGroup)


class Groups(KeptGroups):
    def __init__(self) -> None:
        super().__init__()
        self.alarms: Alarms[Alarm] = Alarms()

    def serve(self, turn: GroupTurn) -> None:
        """The log is read: members have a session from now on to be heard of."""
        self._serves = True
        for group_id in self.offsets:
            self._group(group_id)
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                leaving.expect_all(group, turn)
                continue
            for member in group.members.values():
                group.hear(member, turn)
            if len(group.members) > turn.rules.max_size:
                rebalance.prepare(group, turn)

    # Members

    def join(self, group_id: str, wanted: Joining, ticket: Ticket, new_id: str, turn: GroupTurn) -> None:
        _check_id(group_id)
        known = self.groups.get(group_id)
        if known is None and wanted.who.member_id:
            raise _unknown(group_id, wanted.who)
        if isinstance(known, ConsumerGroup) and not known.is_empty:
            joining.check_member(wanted, turn)
            classic_members.join(known, wanted, ticket, new_id, turn)
            return
        group = known if isinstance(known, ClassicGroup) else ClassicGroup(group_id)
        joining.join(group, wanted, ticket, new_id, turn)
        if isinstance(known, ConsumerGroup):
            Draft(known, turn).end()
        self.groups[group_id] = group

    def sync(self, group_id: str, wanted: Syncing, ticket: Ticket, turn: GroupTurn) -> None:
        group = self._of_member(group_id, wanted.who)
        if isinstance(group, ConsumerGroup):
            classic_members.sync(group, wanted, ticket, turn)
        else:
            syncing.sync(group, wanted, ticket, turn)

    def heartbeat(self, group_id: str, who: MemberId, generation: int, turn: GroupTurn) -> None:
        group = self._of_member(group_id, who)
        if isinstance(group, ConsumerGroup):
            classic_members.heartbeat(group, who, generation, turn)
        else:
            syncing.heartbeat(group, who, generation, turn)

    def leave(self, group_id: str, who: Sequence[MemberId], turn: GroupTurn) -> list[Fault | None]:
        """What became of each."""
        _check_id(group_id)
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._leave_consumers(group, who, turn)
        results: list[Fault | None] = []
        for one in who:
            try:
                if group is None:
                    raise _unknown(group_id, one)
                syncing.leave(group, one, turn)
                self._drop_if_nothing(group, turn)
                results.append(None)
            except Fault as fault:
                results.append(fault.with_traceback(None))
        return results

    def _leave_consumers(self, group: ConsumerGroup, who: Sequence[MemberId], turn: GroupTurn) -> list[Fault | None]:
        """Members of the classic protocol go from a consumer group, all at once: each changes what is left."""
        results: list[Fault | None] = []
        gone: dict[str, None] = {}
        for one in who:
            try:
                gone[classic_members.find_classic(group, one).id] = None
                results.append(None)
            except Fault as fault:
                results.append(fault)
        if gone:
            self._let_go(group, list(gone), turn)
        return results

    def _let_go(self, group: ConsumerGroup, gone: list[str], turn: GroupTurn) -> None:
        if migration.is_to_go_back(group, gone, turn):
            classic = self.groups[group.id] = migration.downgraded(group, gone, turn)
            rebalance.prepare(classic, turn)
        else:
            leaving.let_go(group, gone, turn)

    def _of_member(self, group_id: str, who: MemberId) -> AnyGroup:
        _check_id(group_id)
        group = self.groups.get(group_id)
        if group is None:
            raise _unknown(group_id, who)
        return group

    def beat(self, group_id: str, beat: Heartbeat, turn: GroupTurn) -> HeartbeatAnswer:
        """A member of a consumer group is there, comes or goes (KIP-848)."""
        if not group_id:
            raise InvalidRequest("a group needs a name")
        check(beat, turn.rules.assignors)
        known = self.groups.get(group_id)
        if beat.epoch < 0:
            return self._go(kinds.consumer_group(known, group_id), beat, turn)
        if isinstance(known, ConsumerGroup) or beat.epoch != JOINING_EPOCH:
            return heartbeat.heartbeat(kinds.consumer_group(known, group_id), beat, turn)
        if known is None:
            return heartbeat.heartbeat(ConsumerGroup(group_id), beat, turn)
        group, records = migration.upgraded(known, turn)
        told = heartbeat.heartbeat(group, beat, turn)
        turn.records[:0] = records
        migration.give_way(known, group, turn)
        return told

    def untried(self, group_id: str, expression: str | None, topics: Topics, tried: Tried) -> dict[str, list[str]]:
        """What a heartbeat with this expression would have to try, and whoever runs the machine should before."""
        known = self.groups.get(group_id)
        return untried(known if isinstance(known, ConsumerGroup) else None, expression, topics, tried)

    def _go(self, group: ConsumerGroup, beat: Heartbeat, turn: GroupTurn) -> HeartbeatAnswer:
        member = heartbeat.find(group, beat.who)
        if beat.epoch == AWAY:
            leaving.step_out(group, member, turn)
        else:
            self._let_go(group, [member.id], turn)
        return HeartbeatAnswer(member_id=member.id, epoch=beat.epoch)

    def ring(self, turn: GroupTurn) -> None:
        """Do what is due. Members of a consumer group go together, for each of them changes what is left."""
        gone: dict[str, list[str]] = {}
        for alarm in self.alarms.rung(turn.now):
            group = self.groups.get(alarm.group_id)
            if isinstance(group, ClassicGroup):
                self._due(group, alarm, turn)
            elif group is not None and leaving.must_go(group, alarm):
                gone.setdefault(group.id, []).append(alarm.member_id)
        for group_id, members in gone.items():
            self._let_go(kinds.consumer_group(self.groups[group_id], group_id), list(dict.fromkeys(members)), turn)

    def _due(self, group: ClassicGroup, alarm: Alarm, turn: GroupTurn) -> None:
        match alarm.what:
            case "join":
                rebalance.time_to_join_is_up(group, turn)
            case "sync":
                rebalance.time_to_sync_is_up(group, turn)
            case _:
                rebalance.session_is_over(group, alarm.member_id, turn)
        self._drop_if_nothing(group, turn)

    def _drop_if_nothing(self, group: ClassicGroup, turn: GroupTurn) -> None:
        """Somebody was to join, and never came: nothing of this group is in the log."""
        unused = group.state is State.EMPTY and not group.pending and not group.generation
        if unused and not self.offsets.get(group.id) and not self.pending.places(group.id):
            group.move(Cause.REMOVED, turn)
            del self.groups[group.id]

    # Offsets

    def commit(
        self,
        group_id: str,
        who: MemberId,
        generation: int,
        wanted: Mapping[PartitionName, Committed],
        turn: GroupTurn,
        *,
        knows_epochs: bool = True,
    ) -> None:
        """Write down how far a group has read; `generation` below 0: by somebody who is not in it.

        In a consumer group it is the member's epoch. `knows_epochs`: the request can say so."""
        group = self.groups.get(group_id)
        if group is None:
            if generation >= 0:
                raise GroupNotFound(f"there is no group {group_id}, and so no generation {generation}")
        elif isinstance(group, ConsumerGroup):
            kinds.check_committer(group, who.member_id, generation, knows_epochs=knows_epochs)
        elif generation >= 0 or group.state is not State.EMPTY:
            self._check_committer(group, who, generation, turn)
        turn.records += [offsets.entry(group_id, place, one) for place, one in wanted.items()]

    def _check_committer(self, group: ClassicGroup, who: MemberId, generation: int, turn: GroupTurn) -> None:
        member = group.find(who)
        group.require_generation(generation)
        if group.state is State.COMPLETING:
            raise RebalanceInProgress(f"group {group.id} is being shared out")
        group.hear(member, turn)

    def commit_in_transaction(
        self,
        group_id: str,
        who: MemberId,
        generation: int,
        producer: tuple[int, int],
        wanted: Mapping[PartitionName, Committed],
        turn: GroupTurn,
    ) -> None:
        """The same by a transaction's producer, for when that is committed. Older clients do not say who they are."""
        group = self.groups.get(group_id)
        if group is None and generation >= 0:
            raise IllegalGeneration(f"there is no group {group_id}, and so no generation {generation}")
        named = generation >= 0 or who.member_id or who.instance_id is not None
        if group is not None and named and (generation >= 0 or not group.is_empty):
            kinds.check_generation(group, who, generation)
        turn.records += [InTransaction(*producer, offsets.entry(group_id, place, one)) for place, one in wanted.items()]

    def check_reader(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Whether somebody may be told how far a group has read: a member only while it is in its epoch."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and not (member_id is None and epoch < 0):
            kinds.check_epoch(group, member_id or "", epoch)

    def forget(self, group_id: str, places: Sequence[PartitionName], turn: GroupTurn) -> list[Fault | None]:
        """Forget offsets of topics that a group does not read; what became of each."""
        _check_id(group_id)
        group = self.find(group_id)
        subscribed = group.subscribed if group.members else frozenset()
        if subscribed is None:
            raise NonEmptyGroup(f"group {group_id} has members, and does not say what they read")
        known = self._places(group_id)
        results: list[Fault | None] = []
        for place in places:
            if place.topic in subscribed:
                results.append(SubscribedToTopic(f"group {group_id} reads {place.topic}"))
                continue
            results.append(None)
            if place in known:
                turn.records.append(offsets.entry(group_id, place, None))
        return results

    def _places(self, group_id: str) -> dict[PartitionName, None]:
        """Of which an offset is known, or waits for a transaction's end."""
        return dict.fromkeys(self.committed(group_id)) | self.pending.places(group_id)

    # Ends

    def find(self, group_id: str) -> AnyGroup:
        if group_id not in self.groups:
            raise GroupNotFound(f"there is no group {group_id}")
        return self.groups[group_id]

    def find_kind(self, group_id: str, kind: type[K]) -> K:
        group = self.find(group_id)
        if not isinstance(group, kind):
            raise GroupNotFound(f"group {group_id} is no {kind.kind} group")
        return group

    def delete(self, group_id: str, turn: GroupTurn) -> None:
        """Forget a group that nobody is in, and how far it has read."""
        group = self.find(group_id)
        if not group.is_empty:
            raise NonEmptyGroup(f"group {group_id} has members")
        self._delete(group, turn)

    def _delete(self, group: AnyGroup, turn: GroupTurn) -> None:
        turn.records += [offsets.entry(group.id, place, None) for place in self._places(group.id)]
        if isinstance(group, ConsumerGroup):
            Draft(group, turn).end()
            return
        turn.records.append(Entry(GroupMetadataKey(group=group.id), None))
        for pending in group.pending:
            turn.alarms.cancel(group.session_of(pending))
        group.move(Cause.REMOVED, turn)

    def expire(self, group_ids: Sequence[str], turn: GroupTurn) -> None:
        """Forget what need not be kept: old offsets, those of topics that are gone, groups of which nothing is left."""
        retention_ms = turn.rules.offsets_retention_ms
        for group in [self.groups[one] for one in group_ids if one in self.groups]:
            kept = self.committed(group.id)
            old = offsets.expired(group, kept, turn.wall_ms, retention_ms)
            over = {place: None for place, one in kept.items() if self.is_gone(place, one)} | dict.fromkeys(old)
            pending = self.pending.places(group.id)  # and what is forgotten is not pending either
            over = {place: None for place in over if place not in pending}
            nothing_left = len(over) == len(kept) and not pending
            if nothing_left and (group.is_old(turn.wall_ms, retention_ms) or (over and group.is_unused)):
                self._delete(group, turn)
            else:
                turn.records += [offsets.entry(group.id, place, None) for place in over]


def _check_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupId("a group needs a name")


def _unknown(group_id: str, who: MemberId) -> UnknownMember:
    return UnknownMember(f"{who.member_id or who.instance_id or 'nobody'} is not in group {group_id}: there is none")
