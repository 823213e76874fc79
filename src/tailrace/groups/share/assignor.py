"""`simple`, the assignor of share groups: every partition is read by at least one member, and no member is idle.

With at most as many members as partitions, each partition has one member, and members with the same subscription
differ by at most one partition. With more members, each partition has ceil(members / partitions) of them. Members keep
partitions of their previous target where that is possible.

If subscriptions differ, each partition goes to one of its subscribers, balanced as well as the subscriptions allow.
Then members that got nothing share the partitions that have the fewest members.
"""

from collections.abc import Sequence

from tailrace.groups.consumer.assignors import (
    Assignments,
    AssignorMembers,
    assign_uniformly,
    has_equal_subscriptions,
)
from tailrace.groups.consumer.partition_sets import PartitionSet, partition_set
from tailrace.model.ids import Id, TopicPartition


def simple_assignor(members: AssignorMembers, partitions: Sequence[TopicPartition]) -> dict[str, PartitionSet]:
    """`partitions` are sorted; each has a topic that some member subscribes to."""
    if 0 < len(partitions) < len(members) and has_equal_subscriptions(members):
        return _share_evenly(members, partitions)
    found = assign_uniformly(members, partitions)
    return _with_idle_members_sharing(members, found)


def _share_evenly(members: AssignorMembers, partitions: Sequence[TopicPartition]) -> dict[str, PartitionSet]:
    """Each partition gets `sharing` members. A member has one partition, and some have a second one."""
    sharing = -(-len(members) // len(partitions))
    places = dict.fromkeys(partitions, sharing)  # free places of each partition
    seconds = sharing * len(partitions) - len(members)  # members with two partitions
    assignments: Assignments = {name: {} for name in members}
    for wanted in (1, 2):  # keep previous partitions: first one for each member, then a second one for some
        for name, some in assignments.items():
            keep = next((one for one in members[name].previous if places.get(one, 0) and one not in some), None)
            if keep is not None and len(some) < wanted and (wanted == 1 or seconds):
                _take(some, keep, places)
                seconds -= wanted == 2
    for some in assignments.values():
        if not some:
            _take(some, max(places, key=lambda one: places[one]), places)
    for name, some in assignments.items():  # the members with one partition are more than the places that are left
        free = [one for one, count in places.items() if count and one not in some]
        if free and len(some) == 1:
            _take(assignments[name], free[0], places)
    return {name: partition_set(some) for name, some in assignments.items()}


def _take(some: dict[TopicPartition, None], one: TopicPartition, places: dict[TopicPartition, int]) -> None:
    some[one] = None
    places[one] -= 1


def _with_idle_members_sharing(members: AssignorMembers, found: dict[str, PartitionSet]) -> dict[str, PartitionSet]:
    readers: dict[Id, dict[TopicPartition, int]] = {}  # the number of members of each partition, by topic
    for some in found.values():
        for one in some:
            readers.setdefault(one.topic_id, {})[one] = 1
    for name, member in members.items():
        choice = {one: count for topic in member.topics for one, count in sorted(readers.get(topic, {}).items())}
        if found[name] or not choice:
            continue
        kept = dict.fromkeys(member.previous)
        best = min(choice, key=lambda one: (choice[one], one not in kept, one))
        found[name] = (best,)
        readers[best.topic_id][best] += 1
    return found
