"""Any kind of group, classic, consumer (KIP-848) or share (KIP-932), and the checks of members that depend on the kind.

A group id names one group, of one kind at a time. A classic group may become a consumer group, and the other way round,
and keeps its offsets (`migration.py`). A share group has no committed offsets, and stays a share group until deleted.
"""

from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.requests import MemberId
from tailrace.groups.share.group import ShareGroup
from tailrace.model.faults import (
    GroupNotFound,
    IllegalGeneration,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedVersion,
)

OffsetsGroup = ClassicGroup | ConsumerGroup  # the kinds that commit offsets
AnyGroup = OffsetsGroup | ShareGroup


def require_offsets_group(known: AnyGroup | None, group_id: str) -> OffsetsGroup | None:
    """A group that may have committed offsets; None: the group does not exist."""
    if isinstance(known, ShareGroup):
        raise GroupNotFound(f"Group {group_id} is a share group, which has no committed offsets.")
    return known


def require_share_group(known: AnyGroup | None, group_id: str) -> ShareGroup:
    """The group of a client that sends an epoch as one of its members; if there is none, as below."""
    if not isinstance(known, ShareGroup):
        raise UnknownMember(f"Share group {group_id} not found.")
    return known


def require_consumer_group(known: AnyGroup | None, group_id: str) -> ConsumerGroup:
    """The group of a client that sends an epoch as one of its members.

    If there is none, the answer is UNKNOWN_MEMBER_ID, after which clients join again. Kafka answers GROUP_ID_NOT_FOUND,
    which some clients treat as fatal."""
    if not isinstance(known, ConsumerGroup):
        raise UnknownMember(f"Consumer group {group_id} not found.")
    return known


def check_committer(group: ConsumerGroup, member_id: str, epoch: int, *, knows_epochs: bool) -> None:
    """Any client may commit to a group without members; otherwise only a member, with its current epoch.

    `knows_epochs`: the request's version has the member epoch."""
    if epoch < 0 and group.is_empty:
        return
    member = group.members.get(member_id)
    if member is not None and not member.is_classic and not knows_epochs:
        raise UnsupportedVersion("Members of a consumer group must use OffsetCommit version 9 or later.")
    check_epoch(group, member_id, epoch)


def check_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> None:
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMember(f"Member {member_id or '(no id)'} is not a member of group {group.id}.")
    if epoch != member.current.epoch:
        problem = IllegalGeneration if member.is_classic else StaleMemberEpoch
        raise problem(f"Member {member_id} of group {group.id} is in epoch {member.current.epoch}, not {epoch}.")


def check_generation(group: OffsetsGroup, identity: MemberId, generation: int) -> None:
    """The member is in the group and the generation is current.

    For a consumer group, the generation is the member's epoch. Producers do not know STALE_MEMBER_EPOCH, so a wrong
    epoch is answered with ILLEGAL_GENERATION there too."""
    if isinstance(group, ConsumerGroup):
        try:
            check_epoch(group, identity.member_id, generation)
        except StaleMemberEpoch as fault:
            raise IllegalGeneration(str(fault)) from None
    else:
        group.find(identity)
        group.require_generation(generation)
