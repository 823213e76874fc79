"""A share group of KIP-932: the state that replaying its records yields.

Only `replay` changes that state. A request first replays the records that it is about to write on a copy (`Draft`). The
handling of requests is in `heartbeat`, `target_assignment`, `leaving` and `initializing`.
"""

from dataclasses import replace
from typing import ClassVar

from tailrace.groups.consumer.partition_sets import PartitionSet, from_stored
from tailrace.groups.records import Entry
from tailrace.groups.share import records
from tailrace.groups.share.member import CurrentAssignment, Profile, ShareMember
from tailrace.groups.share.share_state import PartitionsWithState
from tailrace.groups.share.states import GroupState
from tailrace.groups.turn import Alarm, GroupTurn


class ShareGroup:
    kind: ClassVar = "share"
    protocol_type: ClassVar = "share"

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 0  # never decreases
        self.metadata_hash = 0  # of the subscribed topics, when the epoch was last bumped
        self.members: dict[str, ShareMember] = {}
        self.assignment_epoch = 0  # of the target assignment; never above the group's epoch
        self.target: dict[str, PartitionSet] = {}  # the target assignment, by member id
        self.partitions = PartitionsWithState()
        # Not in the log; known to the active coordinator alone.
        self.topics_revision = -1  # the revision of the topics that the epoch reflects
        self.attempt_epoch = -1  # the state epoch with which partitions were last initialized
        self.unsettled_since: float | None = None  # monotonic clock; None: nothing is being initialized or deleted

    def copy(self) -> "ShareGroup":
        other = ShareGroup(self.id)
        other.epoch, other.metadata_hash, other.assignment_epoch = self.epoch, self.metadata_hash, self.assignment_epoch
        other.members, other.target = dict(self.members), dict(self.target)
        other.partitions = self.partitions
        other.topics_revision = self.topics_revision
        return other

    # The log

    def replay(self, entry: Entry) -> None:
        match entry:
            case Entry(records.ShareGroupMetadataKey(), records.ShareGroupMetadataValue() as value):
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case Entry(records.ShareGroupMemberMetadataKey() as key, records.ShareGroupMemberMetadataValue() as value):
                self._set_profile(key.member_id, value)
            case Entry(records.ShareGroupMemberMetadataKey() as key, None):
                self.members.pop(key.member_id, None)
            case Entry(
                records.ShareGroupTargetAssignmentMetadataKey(),
                records.ShareGroupTargetAssignmentMetadataValue() as value,
            ):
                self.assignment_epoch = value.assignment_epoch
            case Entry(
                records.ShareGroupTargetAssignmentMemberKey() as key,
                records.ShareGroupTargetAssignmentMemberValue() as value,
            ):
                self.target[key.member_id] = from_stored(value.topic_partitions)
            case Entry(records.ShareGroupTargetAssignmentMemberKey() as key, None):
                self.target.pop(key.member_id, None)
            case Entry(
                records.ShareGroupCurrentMemberAssignmentKey() as key,
                records.ShareGroupCurrentMemberAssignmentValue() as value,
            ):
                self._set_current(key.member_id, CurrentAssignment.of(value))
            case Entry(records.ShareGroupCurrentMemberAssignmentKey() as key, None):
                self._set_current(key.member_id, CurrentAssignment())
            case Entry(
                records.ShareGroupStatePartitionMetadataKey(), records.ShareGroupStatePartitionMetadataValue() as value
            ):
                self.partitions = PartitionsWithState.of(value)
            case Entry(records.ShareGroupStatePartitionMetadataKey(), None):
                self.partitions = PartitionsWithState()

    def _set_profile(self, member_id: str, profile: Profile) -> None:
        known = self.members.get(member_id)
        self.members[member_id] = (
            ShareMember(id=member_id, profile=profile) if known is None else replace(known, profile=profile)
        )

    def _set_current(self, member_id: str, current: CurrentAssignment) -> None:
        member = self.members.get(member_id)
        if member is not None:  # a compacted log may lack the member's metadata
            self.members[member_id] = replace(member, current=current)

    # Questions

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that its members are subscribed to."""
        return frozenset(name for member in self.members.values() for name in member.profile.subscribed_topic_names)

    # Alarms

    def session_alarm(self, member_id: str) -> Alarm:
        return Alarm(self.id, "session", member_id)

    def restart_session(self, member_id: str, turn: GroupTurn) -> None:
        """A request of the member has arrived: its session timeout starts over."""
        turn.alarm(self.session_alarm(member_id), turn.share_session_timeout_ms(self.id))
