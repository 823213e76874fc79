"""ShareGroupHeartbeat: a member reports changes of its subscription and gets its epoch and assignment.

A heartbeat has three steps, each of which may write records: update the member's metadata and subscription, compute
the target assignment if the group's epoch was bumped, and give this member its target. Several members may read a
partition, so nothing has to be revoked first. Most heartbeats change nothing, and skip all three.

While the state of partitions is being initialized or deleted, members are asked to send their next heartbeat soon: so
a new group has its assignment after about 0.1 s.
"""

from dataclasses import replace
from typing import Final

from tailrace.groups.consumer.requests import JOIN_EPOCH, HeartbeatAnswer
from tailrace.groups.share.draft import Draft
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.member import CurrentAssignment, Profile, ShareMember
from tailrace.groups.share.requests import ShareHeartbeat
from tailrace.groups.share.target_assignment import refresh_subscriptions, update_target
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import FencedMemberEpoch, GroupFull, UnknownMember
from tailrace.model.limits import GROUP_SUBSCRIBED_NAMES_MAX

SOON_MS: Final = 100
SOON_PART: Final = 4  # a group that has waited long for its partitions is asked after this part of that time


def heartbeat(group: ShareGroup, beat: ShareHeartbeat, turn: GroupTurn) -> HeartbeatAnswer:
    known = _known_member(group, beat)
    profile = _updated_profile(beat, None if known is None else known.profile)
    _check(group, known, profile, turn)
    member_id, after, member = beat.member_id, group, known
    if member is None or not _is_unchanged(group, member, profile, turn):
        draft = Draft(group, turn)
        _update_member(draft, member_id, profile)
        update_target(draft)
        _assign_target(draft, member_id)
        after, member = draft.group, draft.member(member_id)
        group.topics_revision = after.topics_revision
    if group.unsettled_since is None and not after.partitions.is_settled:
        group.unsettled_since = turn.now
    group.restart_session(member_id, turn)
    has_changed = known is None or known.current.assigned != member.current.assigned
    may_have_missed = beat.names is not None or beat.epoch != (0 if known is None else known.current.epoch)
    return HeartbeatAnswer(
        member_id=member_id,
        epoch=member.current.epoch,
        interval_ms=_interval_ms(group, after, turn),
        assigned=member.current.assigned if has_changed or may_have_missed else None,
    )


# Finding and checking the member


def find_member(group: ShareGroup, member_id: str) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMember(f"Member {member_id} is not a member of group {group.id}.")
    return member


def _known_member(group: ShareGroup, beat: ShareHeartbeat) -> ShareMember | None:
    """The member that the request identifies, if its epoch is valid; None: it is new.

    The previous epoch is valid: the last answer may have been lost."""
    if beat.epoch == JOIN_EPOCH:  # a fenced member rejoins like this, with its member id
        return group.members.get(beat.member_id)
    member = find_member(group, beat.member_id)
    if beat.epoch not in (member.current.epoch, member.current.previous_epoch):
        raise FencedMemberEpoch(
            f"Member {member.id} of group {group.id} is in epoch {member.current.epoch}, not {beat.epoch}. "
            "The member must abandon all its partitions and rejoin."
        )
    return member


def _check(group: ShareGroup, known: ShareMember | None, profile: Profile, turn: GroupTurn) -> None:
    max_size = turn.rules.share_max_size
    if known is None and len(group.members) >= max_size:
        raise GroupFull(f"Group {group.id} has {len(group.members)} members; group.share.max.size is {max_size}.")
    if known is not None and known.profile == profile:
        return
    names = sum(len(one.profile.subscribed_topic_names) for one in group.members.values())
    if names + len(profile.subscribed_topic_names) > GROUP_SUBSCRIBED_NAMES_MAX:
        raise GroupFull(f"Members of group {group.id} name more than {GROUP_SUBSCRIBED_NAMES_MAX} topics.")


def _updated_profile(beat: ShareHeartbeat, before: Profile | None) -> Profile:
    """The member's metadata so far, with the changes that this heartbeat reports."""
    old = before or Profile(rack_id=None, client_id="", client_host="", subscribed_topic_names=())
    names = old.subscribed_topic_names if beat.names is None else tuple(sorted(dict.fromkeys(beat.names)))
    return replace(
        old,
        rack_id=beat.rack_id if beat.rack_id is not None else old.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        subscribed_topic_names=names,
    )


def _is_unchanged(group: ShareGroup, member: ShareMember, profile: Profile, turn: GroupTurn) -> bool:
    """The member reports nothing new, the topics are the same, and the member has its target assignment."""
    return (
        member.profile == profile
        and group.topics_revision == turn.topics.revision
        and group.epoch == group.assignment_epoch == member.current.epoch
    )


# Changes to the group


def _update_member(draft: Draft, member_id: str, profile: Profile) -> None:
    """Write the member's metadata; bump the group's epoch if the subscription or the topics have changed."""
    group = draft.group
    known = group.members.get(member_id)
    if known is None or known.profile != profile:
        draft.set_profile(member_id, profile)
    changed = known is None or known.profile.subscribed_topic_names != profile.subscribed_topic_names
    if changed or group.topics_revision != draft.turn.topics.revision:
        refresh_subscriptions(draft, changed=changed)


def _assign_target(draft: Draft, member_id: str) -> None:
    group, now = draft.group, draft.member(member_id).current
    if now.epoch != group.assignment_epoch:
        target = group.target.get(member_id, ())
        draft.set_current(
            member_id, CurrentAssignment(epoch=group.assignment_epoch, previous_epoch=now.epoch, assigned=target)
        )


def _interval_ms(group: ShareGroup, after: ShareGroup, turn: GroupTurn) -> int:
    """Until the next heartbeat. The longer a group waits for its partitions, the less often its members ask."""
    normal_ms = turn.share_heartbeat_interval_ms(group.id)
    if group.unsettled_since is None or after.partitions.is_settled:
        return normal_ms
    waited_ms = int((turn.now - group.unsettled_since) * 1000)
    return min(normal_ms, max(SOON_MS, waited_ms // SOON_PART))
