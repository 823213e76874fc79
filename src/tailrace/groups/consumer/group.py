"""A consumer group of KIP-848: the state that replaying its records yields.

Only `replay` changes that state. A request first replays the records that it is about to write on a copy (`Draft`). The
handling of requests is in `heartbeat`, `target_assignment`, `reconciling` and `leaving`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from tailrace.groups.consumer import records
from tailrace.groups.consumer.member import ConsumerMember, CurrentAssignment, Profile
from tailrace.groups.consumer.partition_sets import PartitionSet, from_stored
from tailrace.groups.consumer.states import GroupState, MemberState
from tailrace.groups.consumer_protocol import CONSUMER_PROTOCOL
from tailrace.groups.records import Entry
from tailrace.groups.turn import Alarm, GroupTurn
from tailrace.model.ids import TopicPartition


class ConsumerGroup:
    kind: ClassVar = "consumer"
    protocol_type: ClassVar = CONSUMER_PROTOCOL

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 0  # never decreases
        self.metadata_hash = 0  # of the subscribed topics, when the epoch was last bumped
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # member ids by instance id
        self.assignment_epoch = 0  # of the target assignment; never above the group's epoch
        self.target: dict[str, PartitionSet] = {}  # the target assignment, by member id
        self.owners: dict[TopicPartition, str] = {}  # the member that owns each partition: at most one
        self.expressions: dict[str, tuple[str, ...]] = {}  # the topics that each regular expression matches
        # Not in the log; known to the active coordinator alone.
        self.topics_revision = -1  # the revision of the topics that epoch and expressions reflect
        self.matched_names: Mapping[str, None] = {}  # the topic names at that revision, which expressions have matched
        self.must_rejoin: dict[str, None] = {}  # members of the classic protocol that were told to rejoin

    def copy(self) -> "ConsumerGroup":
        other = ConsumerGroup(self.id)
        other.epoch, other.metadata_hash, other.assignment_epoch = self.epoch, self.metadata_hash, self.assignment_epoch
        other.members, other.static_members = dict(self.members), dict(self.static_members)
        other.target = dict(self.target)
        other.owners, other.expressions = dict(self.owners), dict(self.expressions)
        other.topics_revision, other.matched_names = self.topics_revision, self.matched_names
        return other

    # The log

    def replay(self, entry: Entry) -> None:
        match entry:
            case Entry(records.ConsumerGroupMetadataKey(), records.ConsumerGroupMetadataValue() as value):
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case Entry(
                records.ConsumerGroupMemberMetadataKey() as key, records.ConsumerGroupMemberMetadataValue() as value
            ):
                self._set_profile(key.member_id, value)
            case Entry(records.ConsumerGroupMemberMetadataKey() as key, None):
                self._remove(key.member_id)
            case Entry(
                records.ConsumerGroupTargetAssignmentMetadataKey(),
                records.ConsumerGroupTargetAssignmentMetadataValue() as value,
            ):
                self.assignment_epoch = value.assignment_epoch
            case Entry(
                records.ConsumerGroupTargetAssignmentMemberKey() as key,
                records.ConsumerGroupTargetAssignmentMemberValue() as value,
            ):
                self.target[key.member_id] = from_stored(value.topic_partitions)
            case Entry(records.ConsumerGroupTargetAssignmentMemberKey() as key, None):
                self.target.pop(key.member_id, None)
            case Entry(
                records.ConsumerGroupCurrentMemberAssignmentKey() as key,
                records.ConsumerGroupCurrentMemberAssignmentValue() as value,
            ):
                self._set_current(key.member_id, CurrentAssignment.of(value))
            case Entry(records.ConsumerGroupCurrentMemberAssignmentKey() as key, None):
                self._set_current(key.member_id, CurrentAssignment())
            case Entry(
                records.ConsumerGroupRegularExpressionKey() as key,
                records.ConsumerGroupRegularExpressionValue() as value,
            ):
                self.expressions[key.regular_expression] = value.topics
            case Entry(records.ConsumerGroupRegularExpressionKey() as key, None):
                self.expressions.pop(key.regular_expression, None)

    def _set_profile(self, member_id: str, profile: Profile) -> None:
        known = self.members.get(member_id)
        member = ConsumerMember(id=member_id, profile=profile) if known is None else replace(known, profile=profile)
        self.members[member_id] = member
        if profile.instance_id is not None:
            self.static_members[profile.instance_id] = member_id

    def _remove(self, member_id: str) -> None:
        self._set_current(member_id, CurrentAssignment())
        self.must_rejoin.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None and self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def _set_current(self, member_id: str, current: CurrentAssignment) -> None:
        member = self.members.get(member_id)
        if member is None:
            return  # a compacted log may lack the member's metadata
        for one in member.current.owned:
            if self.owners.get(one) == member_id:
                del self.owners[one]
        for one in current.owned:
            self.owners[one] = member_id
        self.members[member_id] = replace(member, current=current)

    # Questions

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(self.has_reached_target(one) for one in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    is_unused = is_empty

    def is_expired(self, now_ms: int, retention_ms: int) -> bool:
        """An empty group lives as long as its offsets, which the caller has checked."""
        return self.is_empty

    def adopt_topics_revision(self, draft: "ConsumerGroup") -> None:
        """Take over from a copy what replaying its records does not: up to which topics it is updated."""
        self.topics_revision, self.matched_names = draft.topics_revision, draft.matched_names

    def has_reached_target(self, member: ConsumerMember) -> bool:
        return member.current.state is MemberState.STABLE and member.current.epoch == self.assignment_epoch

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that its members are subscribed to."""
        return frozenset(name for member in self.members.values() for name in self.topics_of(member))

    def topics_of(self, member: ConsumerMember) -> Iterator[str]:
        """Those that it names, and those that its regular expression matches."""
        yield from member.profile.subscribed_topic_names
        yield from self.expressions.get(member.profile.subscribed_topic_regex or "", ())

    def assignor(self, default: str) -> str:
        """The assignor that most members name; of several with equal votes, the first named."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.profile.server_assignor
            if name is not None:
                votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name], default=default)

    # Alarms

    def session_alarm(self, member_id: str) -> Alarm:
        return Alarm(self.id, "session", member_id)

    def rebalance_alarm(self, member_id: str) -> Alarm:
        return Alarm(self.id, "rebalance", member_id)

    def join_alarm(self, member_id: str) -> Alarm:
        return Alarm(self.id, "join", member_id)

    def sync_alarm(self, member_id: str) -> Alarm:
        return Alarm(self.id, "sync", member_id)

    def restart_session(self, member: ConsumerMember, turn: GroupTurn) -> None:
        """A request of the member has arrived: its session timeout starts over."""
        classic = member.profile.classic_member_metadata
        timeout_ms = turn.session_timeout_ms(self.id) if classic is None else classic.session_timeout_ms
        turn.alarm(self.session_alarm(member.id), timeout_ms)

    def cancel_alarms(self, member_id: str, turn: GroupTurn) -> None:
        for alarm_of in (self.session_alarm, self.rebalance_alarm, self.join_alarm, self.sync_alarm):
            turn.alarms.cancel(alarm_of(member_id))
