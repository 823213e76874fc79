"""A consumer group of KIP-848, as its records say: a fold over them, which nothing else changes.

Whoever is about to write something tries it on a copy first (`Draft`): the same fold shows what would be, and the
records are handed on. What a group does is in `heartbeat`, `subscribing`, `reconciling` and `leaving`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from tailrace.groups.alarms import Alarm
from tailrace.groups.consumer import records as kept
from tailrace.groups.consumer.member import ConsumerMember, Profile, Standing
from tailrace.groups.consumer.shares import Share, restored
from tailrace.groups.consumer.states import GroupState, MemberState
from tailrace.groups.records import Entry
from tailrace.groups.subscription import CONSUMER_PROTOCOL
from tailrace.groups.turn import GroupTurn
from tailrace.model.ids import TopicPartition


class ConsumerGroup:
    kind: ClassVar = "consumer"
    protocol_type: ClassVar = CONSUMER_PROTOCOL

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 0  # never falls
        self.metadata_hash = 0  # of the topics that are read, when the epoch was raised last
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}  # member ids by instance id
        self.assignment_epoch = 0  # of the target; never above the group's
        self.target: dict[str, Share] = {}  # what each member shall have
        self.owners: dict[TopicPartition, str] = {}  # who has each partition; a partition has one owner
        self.expressions: dict[str, tuple[str, ...]] = {}  # the topics that regular expressions match
        # Known only to the coordinator that serves.
        self.looked_at = -1  # the revision of the topics for which epoch and expressions are right
        self.names: Mapping[str, None] = {}  # of all topics at that revision: expressions were tried on them
        self.called: dict[str, None] = {}  # members of the classic protocol that were told to join again

    def copy(self) -> "ConsumerGroup":
        """To try things on."""
        other = ConsumerGroup(self.id)
        other.epoch, other.metadata_hash, other.assignment_epoch = self.epoch, self.metadata_hash, self.assignment_epoch
        other.members, other.static, other.target = dict(self.members), dict(self.static), dict(self.target)
        other.owners, other.expressions = dict(self.owners), dict(self.expressions)
        other.looked_at, other.names = self.looked_at, self.names
        return other

    # The log

    def replay(self, entry: Entry) -> None:
        match entry:
            case Entry(kept.ConsumerGroupMetadataKey(), kept.ConsumerGroupMetadataValue() as value):
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case Entry(kept.ConsumerGroupMemberMetadataKey() as key, kept.ConsumerGroupMemberMetadataValue() as value):
                self._describe(key.member_id, value)
            case Entry(kept.ConsumerGroupMemberMetadataKey() as key, None):
                self._remove(key.member_id)
            case Entry(
                kept.ConsumerGroupTargetAssignmentMetadataKey(), kept.ConsumerGroupTargetAssignmentMetadataValue() as to
            ):
                self.assignment_epoch = to.assignment_epoch
            case Entry(
                kept.ConsumerGroupTargetAssignmentMemberKey() as key,
                kept.ConsumerGroupTargetAssignmentMemberValue() as shall,
            ):
                self.target[key.member_id] = restored(shall.topic_partitions)
            case Entry(kept.ConsumerGroupTargetAssignmentMemberKey() as key, None):
                self.target.pop(key.member_id, None)
            case Entry(
                kept.ConsumerGroupCurrentMemberAssignmentKey() as key,
                kept.ConsumerGroupCurrentMemberAssignmentValue() as has,
            ):
                self._stand(key.member_id, Standing.of(has))
            case Entry(kept.ConsumerGroupCurrentMemberAssignmentKey() as key, None):
                self._stand(key.member_id, Standing())
            case Entry(
                kept.ConsumerGroupRegularExpressionKey() as key, kept.ConsumerGroupRegularExpressionValue() as found
            ):
                self.expressions[key.regular_expression] = found.topics
            case Entry(kept.ConsumerGroupRegularExpressionKey() as key, None):
                self.expressions.pop(key.regular_expression, None)

    def _describe(self, member_id: str, profile: Profile) -> None:
        known = self.members.get(member_id)
        member = ConsumerMember(id=member_id, profile=profile) if known is None else replace(known, profile=profile)
        self.members[member_id] = member
        if profile.instance_id is not None:
            self.static[profile.instance_id] = member_id

    def _remove(self, member_id: str) -> None:
        self._stand(member_id, Standing())
        self.called.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None and self.static.get(member.instance_id or "") == member_id:
            del self.static[member.instance_id or ""]

    def _stand(self, member_id: str, standing: Standing) -> None:
        """A member has other partitions than before."""
        member = self.members.get(member_id)
        if member is None:
            return  # a compacted log may have lost who that was
        for one in member.standing.owned:
            if self.owners.get(one) == member_id:
                del self.owners[one]
        for one in standing.owned:
            self.owners[one] = member_id
        self.members[member_id] = replace(member, standing=standing)

    # Questions

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(self.has_arrived(one) for one in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    is_unused = is_empty

    def is_old(self, now_ms: int, retention_ms: int) -> bool:
        """Its offsets say how long it is kept: without them it is nothing."""
        return self.is_empty

    def has_looked(self, other: "ConsumerGroup") -> None:
        """What a copy of this has looked at is looked at."""
        self.looked_at, self.names = other.looked_at, other.names

    def has_arrived(self, member: ConsumerMember) -> bool:
        return member.standing.state is MemberState.STABLE and member.standing.epoch == self.assignment_epoch

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that its members read."""
        return frozenset(name for member in self.members.values() for name in self.topics_of(member))

    def topics_of(self, member: ConsumerMember) -> Iterator[str]:
        """By name, and by what its expression matches."""
        yield from member.profile.subscribed_topic_names
        yield from self.expressions.get(member.profile.subscribed_topic_regex or "", ())

    def assignor(self, default: str) -> str:
        """What most members wish for; the first of those, where several are."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            wish = member.profile.server_assignor
            if wish is not None:
                votes[wish] = votes.get(wish, 0) + 1
        return max(votes, key=lambda name: votes[name], default=default)

    # Alarms

    def session_of(self, member_id: str) -> Alarm:
        return Alarm(self.id, "session", member_id)

    def rebalance_of(self, member_id: str) -> Alarm:
        return Alarm(self.id, "rebalance", member_id)

    def join_of(self, member_id: str) -> Alarm:
        return Alarm(self.id, "join", member_id)

    def sync_of(self, member_id: str) -> Alarm:
        return Alarm(self.id, "sync", member_id)

    def hear(self, member: ConsumerMember, turn: GroupTurn) -> None:
        """A member gave a sign of life."""
        classic = member.profile.classic_member_metadata
        timeout_ms = turn.session_timeout_ms(self.id) if classic is None else classic.session_timeout_ms
        turn.alarm(self.session_of(member.id), timeout_ms)

    def silence(self, member_id: str, turn: GroupTurn) -> None:
        """Nothing is expected of a member any more."""
        for alarm_of in (self.session_of, self.rebalance_of, self.join_of, self.sync_of):
            turn.alarms.cancel(alarm_of(member_id))
