"""What a group would be: records are tried on a copy of it and handed to the turn, for the log and the group itself."""

from tailrace.groups.consumer import records as kept
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember, Profile, Standing
from tailrace.groups.consumer.records import ConsumerKey, ConsumerValue
from tailrace.groups.consumer.shares import Share, stored
from tailrace.groups.records import Entry
from tailrace.groups.turn import GroupTurn


class Draft:
    def __init__(self, group: ConsumerGroup, turn: GroupTurn) -> None:
        self.group = group.copy()
        self.turn = turn

    def member(self, member_id: str) -> ConsumerMember:
        return self.group.members[member_id]

    def raise_epoch(self, metadata_hash: int) -> None:
        """The work must be shared out anew."""
        value = kept.ConsumerGroupMetadataValue(epoch=self.group.epoch + 1, metadata_hash=metadata_hash)
        self._write(kept.ConsumerGroupMetadataKey(group=self.group.id), value)

    def begin(self, epoch: int) -> None:
        """A group that was of another kind goes on at this epoch."""
        value = kept.ConsumerGroupMetadataValue(epoch=epoch)
        self._write(kept.ConsumerGroupMetadataKey(group=self.group.id), value)

    def describe(self, member_id: str, profile: Profile) -> None:
        self._write(kept.ConsumerGroupMemberMetadataKey(group=self.group.id, member_id=member_id), profile)

    def stand(self, member_id: str, standing: Standing) -> None:
        key = kept.ConsumerGroupCurrentMemberAssignmentKey(group=self.group.id, member_id=member_id)
        self._write(key, standing.value())

    def aim(self, member_id: str, target: Share) -> None:
        key = kept.ConsumerGroupTargetAssignmentMemberKey(group=self.group.id, member_id=member_id)
        self._write(key, kept.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=stored(target)))

    def aimed(self, epoch: int) -> None:
        """All members' targets are those of this epoch."""
        key = kept.ConsumerGroupTargetAssignmentMetadataKey(group=self.group.id)
        self._write(key, kept.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch))

    def match(self, expression: str, topics: tuple[str, ...] | None) -> None:
        """The topics of an expression; None: nobody uses it any more."""
        key = kept.ConsumerGroupRegularExpressionKey(group=self.group.id, regular_expression=expression)
        if topics is None:
            self._write(key, None)
            return
        revision = self.turn.topics.revision
        self._write(
            key,
            kept.ConsumerGroupRegularExpressionValue(topics=topics, version=revision, timestamp=self.turn.wall_ms),
        )

    def remove(self, member_id: str) -> None:
        """All that is known of a member."""
        group_id = self.group.id
        self._write(kept.ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id), None)
        self._write(kept.ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id), None)
        self._write(kept.ConsumerGroupMemberMetadataKey(group=group_id, member_id=member_id), None)
        self.group.silence(member_id, self.turn)

    def end(self) -> None:
        """All that is known of the group, but for what it has read."""
        for member_id in list(self.group.members):
            self.remove(member_id)
        for expression in list(self.group.expressions):
            self.match(expression, None)
        self._write(kept.ConsumerGroupTargetAssignmentMetadataKey(group=self.group.id), None)
        self._write(kept.ConsumerGroupMetadataKey(group=self.group.id), None)

    def _write(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        entry = Entry(key, value)
        self.turn.records.append(entry)
        self.group.replay(entry)
