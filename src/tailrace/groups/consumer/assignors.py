"""The server-side assignors, `uniform` and `range`: they compute the target assignment of a consumer group.

`uniform` balances the number of partitions and is sticky: a member keeps partitions of its previous target where
that is possible. If all members subscribe to the same topics, their assignments differ by at most one partition. If
not, a partition moves from one subscriber to another as long as that brings the two closer in number. Racks are
ignored.

`range` gives each subscriber of a topic a contiguous range of its partitions, in the order of the members' names.
Topics with the same subscribers and the same number of partitions are cut at the same places, so that partitions of
equal number go to the same member (co-partitioning).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from types import MappingProxyType
from typing import Final, NamedTuple

from tailrace.groups.consumer.partition_sets import PartitionSet, partition_set
from tailrace.model.ids import Id, TopicPartition


class AssignorMember(NamedTuple):
    """A member, as assignors see it."""

    instance_id: str | None
    topics: tuple[Id, ...]  # that it subscribes to; sorted, without duplicates
    previous: PartitionSet = ()  # its target assignment so far


AssignorMembers = Mapping[str, AssignorMember]  # by member id
PartitionCounts = Mapping[Id, int]  # by topic
Assignor = Callable[[AssignorMembers, PartitionCounts], dict[str, PartitionSet]]
# While `uniform` works, an assignment is a mutable set: the keys of a dict, which keep their order.
Assignments = dict[str, dict[TopicPartition, None]]


# uniform


def uniform_assignor(members: AssignorMembers, partitions: PartitionCounts) -> dict[str, PartitionSet]:
    every = [TopicPartition(topic, one) for topic, count in sorted(partitions.items()) for one in range(count)]
    return assign_uniformly(members, every)


def assign_uniformly(members: AssignorMembers, partitions: Sequence[TopicPartition]) -> dict[str, PartitionSet]:
    """`partitions` are sorted; each has a topic that some member subscribes to."""
    assignments = _retained(members, partitions)
    unassigned = _unassigned(assignments, partitions)
    if has_equal_subscriptions(members):
        _balance_homogeneous(assignments, len(partitions), unassigned)
    else:
        _balance_heterogeneous(assignments, _subscribers(members), unassigned)
    return {member: partition_set(some) for member, some in assignments.items()}


def has_equal_subscriptions(members: AssignorMembers) -> bool:
    topics = [member.topics for member in members.values()]
    return all(one == topics[0] for one in topics)


def _retained(members: AssignorMembers, partitions: Sequence[TopicPartition]) -> Assignments:
    """The part of each previous assignment that still exists, is still subscribed to, and is not taken already."""
    free = dict.fromkeys(partitions)
    retained: Assignments = {}
    for member_id, member in members.items():
        topics = dict.fromkeys(member.topics)
        retained[member_id] = {one: None for one in member.previous if one.topic_id in topics and one in free}
        for one in retained[member_id]:
            del free[one]
    return retained


def _unassigned(assignments: Assignments, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    assigned = {one: None for some in assignments.values() for one in some}
    return [one for one in partitions if one not in assigned]


def _balance_homogeneous(assignments: Assignments, total: int, unassigned: list[TopicPartition]) -> None:
    """All members subscribe to the same topics: each gets the quota, and the remainder goes out one by one."""
    quota, remainder = divmod(total, len(assignments)) if assignments else (0, 0)
    for some in assignments.values():  # a member above the quota keeps one partition of the remainder
        allowed = quota + (len(some) > quota and remainder > 0)
        remainder -= allowed > quota
        while len(some) > allowed:
            unassigned.append(some.popitem()[0])
    unassigned.sort(reverse=True)
    for some in assignments.values():
        while len(some) < quota:
            some[unassigned.pop()] = None
    for some in assignments.values():
        if unassigned and len(some) == quota:
            some[unassigned.pop()] = None


def _subscribers(members: AssignorMembers) -> dict[Id, list[str]]:
    """The members of each topic; topics with the fewest first, for their partitions have the least choice."""
    found: dict[Id, list[str]] = {}
    for member_id, member in members.items():
        for topic in member.topics:
            found.setdefault(topic, []).append(member_id)
    return dict(sorted(found.items(), key=lambda one: (len(one[1]), one[0])))


def _balance_heterogeneous(
    assignments: Assignments, subscribers: Mapping[Id, list[str]], unassigned: Sequence[TopicPartition]
) -> None:
    by_topic: dict[Id, list[TopicPartition]] = {}
    for one in unassigned:
        by_topic.setdefault(one.topic_id, []).append(one)
    for topic, members in subscribers.items():
        _assign_to_least_loaded(by_topic.get(topic, ()), members, assignments)
    owned = _by_topic_and_member(assignments)
    while sum(_balance_topic(members, owned.get(topic, {}), assignments) for topic, members in subscribers.items()):
        pass  # all topics once more; it ends because each move brings two members closer


def _assign_to_least_loaded(unassigned: Iterable[TopicPartition], members: list[str], assignments: Assignments) -> None:
    loads = [(len(assignments[member]), at, member) for at, member in enumerate(members)]
    heapify(loads)
    for one in unassigned:
        load, at, member = loads[0]
        assignments[member][one] = None
        heapreplace(loads, (load + 1, at, member))


def _by_topic_and_member(
    assignments: Mapping[str, Iterable[TopicPartition]],
) -> dict[Id, dict[str, list[TopicPartition]]]:
    found: dict[Id, dict[str, list[TopicPartition]]] = {}
    for member, some in assignments.items():
        for one in some:
            found.setdefault(one.topic_id, {}).setdefault(member, []).append(one)
    return found


def _balance_topic(members: list[str], owned: dict[str, list[TopicPartition]], assignments: Assignments) -> bool:
    """Move partitions of one topic from the most to the least loaded member; returns whether any was moved.

    A member that has given never takes here, and the other way round: the highest load only falls, the lowest only
    rises. So givers and takers have a heap each, and the load that the other heap has for a member may be outdated.
    """
    loads = [len(assignments[member]) for member in members]
    if max(loads) - min(loads) < 2:
        return False
    takers = [(load, at) for at, load in enumerate(loads)]
    givers = [(-load, at) for load, at in takers if owned.get(members[at])]
    heapify(takers)
    heapify(givers)
    moved = False
    while givers and -givers[0][0] - takers[0][0] >= 2:
        (negative_load, giving), (load, taking) = givers[0], takers[0]
        giver, taker = members[giving], members[taking]
        one = owned[giver].pop()
        del assignments[giver][one]
        assignments[taker][one] = None
        owned.setdefault(taker, []).append(one)
        heapreplace(takers, (load + 1, taking))
        if owned[giver]:
            heapreplace(givers, (negative_load + 1, giving))
        else:
            heappop(givers)
        moved = True
    return moved


# range


def range_assignor(members: AssignorMembers, partitions: PartitionCounts) -> dict[str, PartitionSet]:
    order = sorted(members, key=lambda member_id: _range_order(member_id, members[member_id].instance_id))
    found: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    for topic, count in sorted(partitions.items()):
        subscribers = [member_id for member_id in order if topic in members[member_id].topics]
        for at, member_id in enumerate(subscribers):
            begin, end = (count * place // len(subscribers) for place in (at, at + 1))
            found[member_id] += [TopicPartition(topic, one) for one in range(begin, end)]
    return {member_id: partition_set(some) for member_id, some in found.items()}


def _range_order(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    """Static members first, by instance id, so that they keep their place when their member id changes."""
    return instance_id is None, instance_id or member_id


ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType({"uniform": uniform_assignor, "range": range_assignor})
