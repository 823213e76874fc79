"""A draft of a change to a share group: each record goes to the turn and is replayed on a copy of the group.

So a request can build several changes on each other, while the group itself changes only when the driver replays the
turn's records.
"""

from tailrace.groups.consumer.partition_sets import PartitionSet, to_stored
from tailrace.groups.records import Entry
from tailrace.groups.share import records
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.member import CurrentAssignment, Profile, ShareMember
from tailrace.groups.share.records import ShareKey, ShareValue
from tailrace.groups.share.share_state import PartitionsWithState
from tailrace.groups.share.states import TRANSITIONS, Cause, ShareMove
from tailrace.groups.turn import GroupTurn


class Draft:
    def __init__(self, group: ShareGroup, turn: GroupTurn) -> None:
        self.group = group.copy()
        self.turn = turn

    def member(self, member_id: str) -> ShareMember:
        return self.group.members[member_id]

    def bump_epoch(self, metadata_hash: int) -> None:
        """A new target assignment is needed."""
        value = records.ShareGroupMetadataValue(epoch=self.group.epoch + 1, metadata_hash=metadata_hash)
        self._write(records.ShareGroupMetadataKey(group=self.group.id), value)

    def set_profile(self, member_id: str, profile: Profile) -> None:
        is_new = member_id not in self.group.members
        before = self.group.state
        self._write(records.ShareGroupMemberMetadataKey(group=self.group.id, member_id=member_id), profile)
        if is_new:
            self._moved(ShareMove(before, Cause.JOINED, self.group.state))

    def set_current(self, member_id: str, current: CurrentAssignment) -> None:
        key = records.ShareGroupCurrentMemberAssignmentKey(group=self.group.id, member_id=member_id)
        self._write(key, current.value())

    def set_target(self, member_id: str, target: PartitionSet) -> None:
        key = records.ShareGroupTargetAssignmentMemberKey(group=self.group.id, member_id=member_id)
        self._write(key, records.ShareGroupTargetAssignmentMemberValue(topic_partitions=to_stored(target)))

    def set_assignment_epoch(self, epoch: int) -> None:
        """The targets of all members are those of this epoch."""
        key = records.ShareGroupTargetAssignmentMetadataKey(group=self.group.id)
        value = records.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=self.turn.wall_ms
        )
        self._write(key, value)

    def set_partitions(self, partitions: PartitionsWithState) -> None:
        """Which partitions have state. What is to be initialized or deleted is then done by the driver."""
        if partitions == self.group.partitions:
            return
        self._write(records.ShareGroupStatePartitionMetadataKey(group=self.group.id), partitions.value())
        if not partitions.is_settled:
            self.turn.unsettled_groups[self.group.id] = None

    def remove_member(self, member_id: str) -> None:
        """Delete all records of a member, and its alarm."""
        group_id, before = self.group.id, self.group.state
        self._write(records.ShareGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id), None)
        self._write(records.ShareGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id), None)
        self._write(records.ShareGroupMemberMetadataKey(group=group_id, member_id=member_id), None)
        self.turn.alarms.cancel(self.group.session_alarm(member_id))
        cause = Cause.LEFT if self.group.members else Cause.DESERTED
        self._moved(ShareMove(before, cause, self.group.state))

    def delete_group(self) -> None:
        """Delete all records of a group without members."""
        group_id = self.group.id
        self._moved(ShareMove(self.group.state, Cause.DELETED, TRANSITIONS[self.group.state, Cause.DELETED]))
        self._write(records.ShareGroupStatePartitionMetadataKey(group=group_id), None)
        self._write(records.ShareGroupTargetAssignmentMetadataKey(group=group_id), None)
        self._write(records.ShareGroupMetadataKey(group=group_id), None)

    def _moved(self, move: ShareMove) -> None:
        assert TRANSITIONS[move.state, move.cause] is move.to, f"{move} is not in the table"
        self.turn.share_moves.append((self.group.id, move))

    def _write(self, key: ShareKey, value: ShareValue | None) -> None:
        entry = Entry(key, value)
        self.turn.records.append(entry)
        self.group.replay(entry)
