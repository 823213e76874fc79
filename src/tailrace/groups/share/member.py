"""A member of a share group: its metadata and its current assignment, each the value of one record."""

from typing import Final

from tailrace.groups.consumer.partition_sets import PartitionSet, from_stored, to_stored
from tailrace.groups.share.records import ShareGroupCurrentMemberAssignmentValue, ShareGroupMemberMetadataValue
from tailrace.model.frozen import frozen

Profile = ShareGroupMemberMetadataValue  # what the client declares: its names and its subscription
STABLE_NUMBER: Final = 0  # of the only state that a member can have, as in Kafka's records


@frozen
class CurrentAssignment:
    """The partitions that a member has been assigned."""

    epoch: int = 0  # of the target assignment that these are from
    previous_epoch: int = -1  # a member that missed the last answer still sends this one
    assigned: PartitionSet = ()

    @classmethod
    def of(cls, value: ShareGroupCurrentMemberAssignmentValue) -> "CurrentAssignment":
        return cls(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=from_stored(value.assigned_partitions),
        )

    def value(self) -> ShareGroupCurrentMemberAssignmentValue:
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=STABLE_NUMBER,
            assigned_partitions=to_stored(self.assigned),
        )


@frozen
class ShareMember:
    id: str
    profile: Profile
    current: CurrentAssignment = CurrentAssignment()
