"""The group epoch of a share group, and the target assignment that belongs to it.

The epoch is bumped when a member joins, leaves or changes its subscription, when a subscribed topic is created, deleted
or gets more partitions, and when partitions have been initialized: only those are assigned. Changes of topics are
noticed at the next heartbeat of any member.
"""

from collections.abc import Mapping

from tailrace.groups.consumer.assignors import AssignorMember
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.consumer.target_assignment import metadata_hash
from tailrace.groups.share.assignor import simple_assignor
from tailrace.groups.share.draft import Draft
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.share_state import BY_RESET_POLICY
from tailrace.groups.topics import Topics
from tailrace.model.ids import Id, TopicPartition


def refresh_subscriptions(draft: Draft, *, changed: bool) -> None:
    """Bump the epoch if the group needs a new target assignment, and initialize partitions that are new to it.

    `changed`: a member has joined, left or changed its subscription."""
    group, topics = draft.group, draft.turn.topics
    found = metadata_hash(group.subscribed, topics)
    if changed or found != group.metadata_hash:
        draft.bump_epoch(found)
    _initialize_new_partitions(draft)
    group.topics_revision = topics.revision


def _initialize_new_partitions(draft: Draft) -> None:
    """A topic that is new to the group starts by its reset policy; a partition added to a known topic starts at 0, for
    it may have records before the group knows of it."""
    state = draft.group.partitions
    known = {**dict.fromkeys(state.initialized), **dict.fromkeys(state.initializing)}
    known_topics = {one.topic_id: None for one in known}
    starts: dict[TopicPartition, int] = {}
    names: dict[Id, str] = {}
    for name, (topic_id, count) in _existing(draft.group, draft.turn.topics).items():
        if topic_id in state.deleting:
            continue  # it is initialized again once its old state is gone
        places = (TopicPartition(topic_id, number) for number in range(count))
        start = 0 if topic_id in known_topics else BY_RESET_POLICY
        starts |= {one: start for one in places if one not in known}
        names[topic_id] = name
    if starts:
        draft.set_partitions(state.with_initializing(starts, names))


def _existing(group: ShareGroup, topics: Topics) -> Mapping[str, tuple[Id, int]]:
    found = {name: topics.find(name) for name in sorted(group.subscribed)}
    return {name: (one.id, one.partitions) for name, one in found.items() if one is not None}


def update_target(draft: Draft) -> None:
    """Compute the target assignment if it is not that of the group's epoch. Only changed targets are written."""
    group = draft.group
    if group.epoch == group.assignment_epoch:
        return
    for member_id, target in _assign(group, draft.turn.topics).items():
        if group.target.get(member_id) != target:
            draft.set_target(member_id, target)
    draft.set_assignment_epoch(group.epoch)


def _assign(group: ShareGroup, topics: Topics) -> dict[str, PartitionSet]:
    ids = {name: topic_id for name, (topic_id, _) in _existing(group, topics).items()}
    members = {
        one.id: AssignorMember(
            instance_id=None,
            topics=tuple(sorted(ids[name] for name in one.profile.subscribed_topic_names if name in ids)),
            previous=group.target.get(one.id, ()),
        )
        for one in group.members.values()
    }
    subscribed = dict.fromkeys(ids.values())
    return simple_assignor(members, [one for one in group.partitions.readable if one.topic_id in subscribed])
