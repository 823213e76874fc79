"""The two kinds of groups, and how one becomes the other: a name belongs to one group, whose offsets stay."""

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.group import ClassicGroup
from tailrace.groups.requests import MemberId
from tailrace.model.faults import (
    IllegalGeneration,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedVersion,
)

AnyGroup = ClassicGroup | ConsumerGroup


def consumer_group(known: AnyGroup | None, group_id: str) -> ConsumerGroup:
    """The group of somebody who says that it is in it.

    Where there is none, it is told that it is not: Kafka says that there is no group, which makes some clients give up
    for good, and not come back."""
    if not isinstance(known, ConsumerGroup):
        raise UnknownMember(f"nobody is in a consumer group {group_id}: there is none")
    return known


def check_committer(group: ConsumerGroup, member_id: str, epoch: int, *, knows_epochs: bool) -> None:
    """Whether somebody may commit: anybody while nobody is in the group, else a member in its epoch."""
    if epoch < 0 and group.is_empty:
        return
    member = group.members.get(member_id)
    if member is not None and not member.is_classic and not knows_epochs:
        raise UnsupportedVersion("a member of a consumer group must commit with OffsetCommit version 9 or later")
    check_epoch(group, member_id, epoch)


def check_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> None:
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMember(f"{member_id or 'nobody'} is not in group {group.id}")
    if epoch != member.standing.epoch:
        problem = IllegalGeneration if member.is_classic else StaleMemberEpoch
        raise problem(f"{member_id} of group {group.id} is in epoch {member.standing.epoch}, not {epoch}")


def check_generation(group: AnyGroup, who: MemberId, generation: int) -> None:
    """Whether somebody is in the group, in this generation, or in this epoch of its own: producers know no epochs."""
    if isinstance(group, ConsumerGroup):
        try:
            check_epoch(group, who.member_id, generation)
        except StaleMemberEpoch as fault:
            raise IllegalGeneration(str(fault)) from None
    else:
        group.find(who)
        group.require_generation(generation)
