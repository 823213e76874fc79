"""One member of a consumer group: what it says of itself, and how far it has come. Two records, two values."""

from typing import Final

from tailrace.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from tailrace.groups.consumer.shares import Share, restored, stored
from tailrace.groups.consumer.states import STATE_NUMBERS, STATES_BY_NUMBER, MemberState
from tailrace.model.frozen import frozen

Profile = ConsumerGroupMemberMetadataValue
AWAY: Final = -2  # the epoch of a static member that left for a while


@frozen
class Standing:
    """How far a member has come on its way to what it shall have."""

    epoch: int = 0  # of the group's target that it has reached; never above it
    previous_epoch: int = -1  # a member whose answer was lost still says this one
    state: MemberState = MemberState.STABLE
    assigned: Share = ()  # what it has and keeps, or may take
    revoking: Share = ()  # what it has, and was told to give up

    @classmethod
    def of(cls, value: ConsumerGroupCurrentMemberAssignmentValue) -> "Standing":
        return cls(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=STATES_BY_NUMBER[value.state],
            assigned=restored(value.assigned_partitions),
            revoking=restored(value.partitions_pending_revocation),
        )

    def value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=STATE_NUMBERS[self.state],
            assigned_partitions=stored(self.assigned),
            partitions_pending_revocation=stored(self.revoking),
        )

    @property
    def owned(self) -> Share:
        """What nobody else may have."""
        return self.assigned + self.revoking


@frozen
class ConsumerMember:
    id: str
    profile: Profile
    standing: Standing = Standing()

    @property
    def instance_id(self) -> str | None:
        return self.profile.instance_id

    @property
    def is_away(self) -> bool:
        """A static member that left for a while: what it has is kept for it, for a session."""
        return self.standing.epoch == AWAY

    @property
    def is_classic(self) -> bool:
        """It speaks the classic protocol, and is served by translation."""
        return self.profile.classic_member_metadata is not None
