"""A draft of a change to a consumer group: each record goes to the turn and is replayed on a copy of the group.

So a request can build several changes on each other, while the group itself changes only when the driver replays the
turn's records.
"""

from tailrace.groups.consumer import records
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember, CurrentAssignment, Profile
from tailrace.groups.consumer.partition_sets import PartitionSet, to_stored
from tailrace.groups.consumer.records import ConsumerKey, ConsumerValue
from tailrace.groups.records import Entry
from tailrace.groups.turn import GroupTurn


class Draft:
    def __init__(self, group: ConsumerGroup, turn: GroupTurn) -> None:
        self.group = group.copy()
        self.turn = turn

    def member(self, member_id: str) -> ConsumerMember:
        return self.group.members[member_id]

    def bump_epoch(self, metadata_hash: int) -> None:
        """A new target assignment is needed."""
        value = records.ConsumerGroupMetadataValue(epoch=self.group.epoch + 1, metadata_hash=metadata_hash)
        self._write(records.ConsumerGroupMetadataKey(group=self.group.id), value)

    def set_epoch(self, epoch: int) -> None:
        """The first epoch of a group that was a classic one."""
        value = records.ConsumerGroupMetadataValue(epoch=epoch)
        self._write(records.ConsumerGroupMetadataKey(group=self.group.id), value)

    def set_profile(self, member_id: str, profile: Profile) -> None:
        self._write(records.ConsumerGroupMemberMetadataKey(group=self.group.id, member_id=member_id), profile)

    def set_current(self, member_id: str, current: CurrentAssignment) -> None:
        key = records.ConsumerGroupCurrentMemberAssignmentKey(group=self.group.id, member_id=member_id)
        self._write(key, current.value())

    def set_target(self, member_id: str, target: PartitionSet) -> None:
        key = records.ConsumerGroupTargetAssignmentMemberKey(group=self.group.id, member_id=member_id)
        self._write(key, records.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=to_stored(target)))

    def set_assignment_epoch(self, epoch: int) -> None:
        """The targets of all members are those of this epoch."""
        key = records.ConsumerGroupTargetAssignmentMetadataKey(group=self.group.id)
        self._write(key, records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch))

    def set_matches(self, expression: str, topics: tuple[str, ...] | None) -> None:
        """The topics that an expression matches; None: no member uses it."""
        key = records.ConsumerGroupRegularExpressionKey(group=self.group.id, regular_expression=expression)
        if topics is None:
            self._write(key, None)
            return
        revision = self.turn.topics.revision
        self._write(
            key,
            records.ConsumerGroupRegularExpressionValue(topics=topics, version=revision, timestamp=self.turn.wall_ms),
        )

    def remove_member(self, member_id: str) -> None:
        """Delete all records of a member, and its alarms."""
        group_id = self.group.id
        self._write(records.ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id), None)
        self._write(records.ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id), None)
        self._write(records.ConsumerGroupMemberMetadataKey(group=group_id, member_id=member_id), None)
        self.group.cancel_alarms(member_id, self.turn)

    def delete_group(self) -> None:
        """Delete all records of the group, except its offsets."""
        for member_id in list(self.group.members):
            self.remove_member(member_id)
        for expression in list(self.group.expressions):
            self.set_matches(expression, None)
        self._write(records.ConsumerGroupTargetAssignmentMetadataKey(group=self.group.id), None)
        self._write(records.ConsumerGroupMetadataKey(group=self.group.id), None)

    def _write(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        entry = Entry(key, value)
        self.turn.records.append(entry)
        self.group.replay(entry)
