"""The assignors of the classic protocol: the elected leader computes with one of them who reads what.

Both give the same result as Kafka's for the same members and topics, so that any member of a group may be its leader.
Static members come first, by instance id, since their member ids change; racks are ignored.

`range` cuts each topic into contiguous ranges, one for each subscriber; the first ones get one more if it does not come
out even. `roundrobin` deals the partitions of all topics to the members in turn.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from tailrace.client.groups.member import Partitions
from tailrace.model.ids import PartitionName


class Subscriber(NamedTuple):
    """A member, as assignors see it."""

    topics: tuple[str, ...]
    instance_id: str | None = None


Subscribers = Mapping[str, Subscriber]  # by member id
PartitionCounts = Mapping[str, int]  # by topic; topics that do not exist are missing
Assignor = Callable[[Subscribers, PartitionCounts], dict[str, Partitions]]


def assign_ranges(members: Subscribers, counts: PartitionCounts) -> dict[str, Partitions]:
    order = _in_order(members)
    found: dict[str, list[PartitionName]] = {member: [] for member in order}
    for topic in _topics(members, counts):
        subscribers = [member for member in order if topic in members[member].topics]
        each, remainder = divmod(counts[topic], len(subscribers))
        begin = 0
        for place, member in enumerate(subscribers):
            end = begin + each + (place < remainder)
            found[member] += [PartitionName(topic, number) for number in range(begin, end)]
            begin = end
    return {member: tuple(some) for member, some in found.items()}


def assign_in_turn(members: Subscribers, counts: PartitionCounts) -> dict[str, Partitions]:
    order = _in_order(members)
    found: dict[str, list[PartitionName]] = {member: [] for member in order}
    turn = 0
    for topic in _topics(members, counts):
        for number in range(counts[topic]):
            while topic not in members[order[turn]].topics:
                turn = (turn + 1) % len(order)
            found[order[turn]].append(PartitionName(topic, number))
            turn = (turn + 1) % len(order)
    return {member: tuple(some) for member, some in found.items()}


def _in_order(members: Subscribers) -> list[str]:
    def place(member: str) -> tuple[bool, str]:
        instance_id = members[member].instance_id
        return instance_id is None, instance_id or member

    return sorted(members, key=place)


def _topics(members: Subscribers, counts: PartitionCounts) -> list[str]:
    """The existing topics that some member subscribes to."""
    return sorted({topic for one in members.values() for topic in one.topics if topic in counts})


ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType({"range": assign_ranges, "roundrobin": assign_in_turn})
