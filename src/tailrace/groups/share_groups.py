"""The part of the group state machine that is about share groups (KIP-932): members, and the share state of partitions.

`Groups` adds the other kinds of groups, time, and what is common to all kinds.
"""

from collections.abc import Iterable, Mapping, Sequence

from tailrace.groups.any_group import AnyGroup, require_share_group
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.consumer.requests import JOIN_EPOCH, HeartbeatAnswer
from tailrace.groups.replayed_groups import ReplayedGroups
from tailrace.groups.share import heartbeat, initializing, leaving
from tailrace.groups.share.draft import Draft
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.initializing import ShareStateWork
from tailrace.groups.share.requests import ShareHeartbeat, check_heartbeat
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import CoordinatorUnavailable, GroupNotFound, InvalidRequest
from tailrace.model.ids import Id, TopicPartition


class ShareGroups(ReplayedGroups):
    def find(self, group_id: str) -> AnyGroup:
        if group_id not in self.groups:
            raise GroupNotFound(f"Group {group_id} not found.")
        return self.groups[group_id]

    def find_share_group(self, group_id: str) -> ShareGroup:
        group = self.find(group_id)
        if not isinstance(group, ShareGroup):
            raise GroupNotFound(f"Group {group_id} is not a share group.")
        return group

    # Members

    def share_heartbeat(self, group_id: str, beat: ShareHeartbeat, turn: GroupTurn) -> HeartbeatAnswer:
        """ShareGroupHeartbeat: a member joins, stays or leaves."""
        if not group_id:
            raise InvalidRequest("GroupId can't be empty.")
        check_heartbeat(beat)
        known = self.groups.get(group_id)
        if beat.epoch < 0:
            group = require_share_group(known, group_id)
            member = heartbeat.find_member(group, beat.member_id)
            leaving.remove_members(group, [member.id], turn)
            return HeartbeatAnswer(member_id=member.id, epoch=beat.epoch)
        if isinstance(known, ShareGroup) or beat.epoch != JOIN_EPOCH:
            return heartbeat.heartbeat(require_share_group(known, group_id), beat, turn)
        if known is not None:
            raise GroupNotFound(f"Group {group_id} is a {known.kind} group, not a share group.")
        return heartbeat.heartbeat(ShareGroup(group_id), beat, turn)

    def _serve_share_group(self, group: ShareGroup, turn: GroupTurn) -> None:
        for member_id in group.members:
            group.restart_session(member_id, turn)
        initializing.forget_deleted_topics(group, turn)
        initializing.resume(group, turn)

    # The share state of partitions: what the driver does, and reports

    def share_state_work(self, group_id: str, turn: GroupTurn) -> ShareStateWork | None:
        """The next attempt to initialize or delete share state; None: there is nothing to do."""
        group = self.groups.get(group_id)
        return initializing.begin(group, turn) if isinstance(group, ShareGroup) else None

    def share_state_initialized(self, group_id: str, done: Mapping[TopicPartition, int], turn: GroupTurn) -> None:
        """Leaders have initialized partitions, with these start offsets as in the work."""
        group = self.groups.get(group_id)
        if isinstance(group, ShareGroup):
            initializing.initialized(group, done, turn)

    def share_state_deleted(self, group_id: str, gone: Iterable[TopicPartition], turn: GroupTurn) -> None:
        group = self.groups.get(group_id)
        if isinstance(group, ShareGroup):
            initializing.deleted(group, gone, turn)

    def unsettled_share_state(self, group_id: str, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of the partitions whose state is being initialized or deleted."""
        group = self.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return []
        state = group.partitions
        return [one for one in partitions if one in state.initializing or one in state.to_delete]

    # What administrators ask for

    def alter_share_offsets(
        self, group_id: str, starts: Mapping[TopicPartition, int], names: Mapping[Id, str], turn: GroupTurn
    ) -> None:
        """AlterShareGroupOffsets: let a group without members start at other offsets."""
        initializing.start_at(self.find_share_group(group_id), starts, names, turn)

    def delete_share_state(self, group_id: str, topics: Sequence[Id], turn: GroupTurn) -> PartitionSet:
        """DeleteShareGroupOffsets: delete the state of topics, for a group without members; returns their partitions.

        The driver reports when that is done."""
        return initializing.delete_topics(self.find_share_group(group_id), topics, turn)

    def prepare_delete(self, group_id: str, turn: GroupTurn) -> PartitionSet:
        """The first step of DeleteGroups: delete the state of all partitions of a share group; returns those."""
        group = self.find(group_id)
        if not isinstance(group, ShareGroup):
            return ()
        return initializing.delete_topics(group, list(group.partitions.names), turn)

    def _delete_share_group(self, group: ShareGroup, turn: GroupTurn) -> None:
        if group.partitions.names:
            raise CoordinatorUnavailable(f"The share state of group {group.id} is not deleted yet.")
        Draft(group, turn).delete_group()
