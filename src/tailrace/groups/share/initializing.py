"""Initializing and deleting the share state of partitions: what partition leaders have to do, and what they have done.

The driver asks for the work of a group (`begin`), lets the leaders of the partitions and the share coordinator do it,
and reports what has succeeded (`initialized`, `deleted`). Whatever has not is in the log and is tried again, also by a
new coordinator.

A request to initialize a partition may be carried out late, when the coordinator has long given it up: it must not
reset a partition that is being read. So each attempt has a state epoch of its own, the group's epoch, and the share
coordinator refuses lower ones.
"""

from collections.abc import Iterable, Mapping

from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.share.draft import Draft
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.share_state import PartitionsWithState
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import CoordinatorUnavailable, NonEmptyGroup
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, TopicPartition


@frozen
class ShareStateWork:
    """What is to be done for a group."""

    state_epoch: int
    initialize: Mapping[TopicPartition, int]  # with start offsets; -1: by the group's reset policy
    delete: PartitionSet
    names: Mapping[Id, str]  # of the topics


def begin(group: ShareGroup, turn: GroupTurn) -> ShareStateWork | None:
    """The next attempt; None: there is nothing to do."""
    state = group.partitions
    if state.is_settled:
        return None
    epoch = group.epoch
    if state.initializing:
        if epoch <= group.attempt_epoch:
            _bump(Draft(group, turn))
            epoch += 1
        group.attempt_epoch = epoch
    return ShareStateWork(state_epoch=epoch, initialize=state.initializing, delete=state.to_delete, names=state.names)


def initialized(group: ShareGroup, done: Mapping[TopicPartition, int], turn: GroupTurn) -> None:
    """Partitions are initialized with these start offsets: they can be assigned."""
    draft = Draft(group, turn)
    _settle(group, draft, group.partitions.with_initialized(done))


def deleted(group: ShareGroup, gone: Iterable[TopicPartition], turn: GroupTurn) -> None:
    """The state of these partitions is deleted. If their topics are still subscribed to, they are initialized anew."""
    draft = Draft(group, turn)
    _settle(group, draft, group.partitions.without(gone))
    group.topics_revision = -1  # the next heartbeat looks for partitions that are not initialized


def _settle(group: ShareGroup, draft: Draft, after: PartitionsWithState) -> None:
    before = group.partitions
    draft.set_partitions(after)
    if draft.group.members and after.readable != before.readable:
        _bump(draft)
    if after.is_settled:
        group.unsettled_since = None


def _bump(draft: Draft) -> None:
    draft.bump_epoch(draft.group.metadata_hash)
    if not draft.group.members:
        draft.set_assignment_epoch(draft.group.epoch)


# What administrators ask for


def start_at(group: ShareGroup, starts: Mapping[TopicPartition, int], names: Mapping[Id, str], turn: GroupTurn) -> None:
    """Initialize partitions with new start offsets. What a leader still writes for the old ones is then refused."""
    require_empty(group)
    for one in starts:
        if one.topic_id in group.partitions.deleting:
            raise CoordinatorUnavailable(f"The share state of topic {names[one.topic_id]} is still being deleted.")
    draft = Draft(group, turn)
    _bump(draft)
    draft.set_partitions(group.partitions.with_initializing(starts, names))


def delete_topics(group: ShareGroup, topics: Iterable[Id], turn: GroupTurn) -> PartitionSet:
    """Delete the state of topics that no member reads; returns all partitions whose state is being deleted then."""
    require_empty(group)
    after = group.partitions.with_deleting(topics)
    Draft(group, turn).set_partitions(after)
    return after.to_delete


def forget_deleted_topics(group: ShareGroup, turn: GroupTurn) -> None:
    """Delete the state of topics that have been deleted."""
    gone = [one for one in group.partitions.names if turn.topics.is_deleted(one)]
    draft = Draft(group, turn)
    before = draft.group.partitions
    draft.set_partitions(before.with_deleting(gone))
    if draft.group.members and draft.group.partitions.readable != before.readable:
        _bump(draft)


def require_empty(group: ShareGroup) -> None:
    if not group.is_empty:
        raise NonEmptyGroup(f"Group {group.id} is not empty.")


def resume(group: ShareGroup, turn: GroupTurn) -> None:
    """A new coordinator becomes active: it continues what the one before has begun."""
    if group.partitions.is_settled:
        return
    turn.unsettled_groups[group.id] = None
    group.attempt_epoch = group.epoch
    group.unsettled_since = turn.now
