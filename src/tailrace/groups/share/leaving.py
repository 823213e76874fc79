"""How members of a share group leave: on request, or by session timeout."""

from collections.abc import Iterable

from tailrace.groups.share.draft import Draft
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.target_assignment import refresh_subscriptions
from tailrace.groups.turn import GroupTurn


def remove_members(group: ShareGroup, member_ids: Iterable[str], turn: GroupTurn) -> None:
    draft = Draft(group, turn)
    for member_id in member_ids:
        draft.remove_member(member_id)
    refresh_subscriptions(draft, changed=True)
    if not draft.group.members:
        draft.set_assignment_epoch(draft.group.epoch)  # without members there is no target to compute
