"""A member of a consumer group: its metadata and its current assignment, each the value of one record."""

from typing import Final

from tailrace.groups.consumer.partition_sets import PartitionSet, from_stored, to_stored
from tailrace.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from tailrace.groups.consumer.states import STATE_NUMBERS, STATES_BY_NUMBER, MemberState
from tailrace.model.frozen import frozen

Profile = ConsumerGroupMemberMetadataValue  # what the client declares: names, subscription, timeouts
STATIC_LEAVE_EPOCH: Final = -2  # the epoch of a static member that left temporarily


@frozen
class CurrentAssignment:
    """What a member owns, and how far it has been reconciled with the target assignment."""

    epoch: int = 0  # of the target assignment that the member has reached; never above the group's assignment epoch
    previous_epoch: int = -1  # a member that missed the last answer still sends this one
    state: MemberState = MemberState.STABLE
    assigned: PartitionSet = ()  # what the member owns and keeps, or may take
    revoking: PartitionSet = ()  # what the member owns and was asked to revoke

    @classmethod
    def of(cls, value: ConsumerGroupCurrentMemberAssignmentValue) -> "CurrentAssignment":
        return cls(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=STATES_BY_NUMBER[value.state],
            assigned=from_stored(value.assigned_partitions),
            revoking=from_stored(value.partitions_pending_revocation),
        )

    def value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=STATE_NUMBERS[self.state],
            assigned_partitions=to_stored(self.assigned),
            partitions_pending_revocation=to_stored(self.revoking),
        )

    @property
    def owned(self) -> PartitionSet:
        """The partitions that no other member may get."""
        return self.assigned + self.revoking


@frozen
class ConsumerMember:
    id: str
    profile: Profile
    current: CurrentAssignment = CurrentAssignment()

    @property
    def instance_id(self) -> str | None:
        return self.profile.instance_id

    @property
    def is_away(self) -> bool:
        """A static member that left temporarily: it keeps its partitions until its session expires."""
        return self.current.epoch == STATIC_LEAVE_EPOCH

    @property
    def is_classic(self) -> bool:
        """It uses the classic protocol, which `classic_members` translates."""
        return self.profile.classic_member_metadata is not None
