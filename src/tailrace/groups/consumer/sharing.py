"""`uniform`: everybody gets as much as everybody else, and keeps what it has where that is possible.

Where all members read the same, shares differ by one at most. Where they do not, a partition is moved from one member
to another who reads it only if that brings the two closer, until no such move is left. Racks are not looked at.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from tailrace.groups.consumer.shares import Share, share
from tailrace.model.ids import Id, TopicPartition


class Wish(NamedTuple):
    """A member, for those who share out."""

    instance_id: str | None
    topics: tuple[Id, ...]  # that it reads, each once, in order
    has: Share = ()  # its share so far


Wishes = Mapping[str, Wish]  # by member
Partitions = Mapping[Id, int]  # how many each topic has


def uniform(wishes: Wishes, partitions: Partitions) -> dict[str, Share]:
    kept = _kept(wishes, partitions)
    topics = [wish.topics for wish in wishes.values()]
    if all(one == topics[0] for one in topics):
        _even(kept, sum(partitions.values()), _free(kept, partitions))
    else:
        _fair(kept, _readers(wishes), partitions)
    return {member: share(some) for member, some in kept.items()}


def _kept(wishes: Wishes, partitions: Partitions) -> dict[str, dict[TopicPartition, None]]:
    """What members have that is there still, that they read still, and that nobody before them has."""
    claimed: dict[TopicPartition, None] = {}
    kept: dict[str, dict[TopicPartition, None]] = {}
    for member, wish in wishes.items():
        reads = dict.fromkeys(wish.topics)
        fit = [one for one in wish.has if one.topic_id in reads and one.partition < partitions[one.topic_id]]
        kept[member] = {one: None for one in fit if one not in claimed}
        claimed |= kept[member]
    return kept


def _free(kept: Mapping[str, Mapping[TopicPartition, None]], partitions: Partitions) -> list[TopicPartition]:
    claimed = {one: None for some in kept.values() for one in some}
    every = (TopicPartition(topic, one) for topic, count in sorted(partitions.items()) for one in range(count))
    return [one for one in every if one not in claimed]


def _even(kept: dict[str, dict[TopicPartition, None]], total: int, free: list[TopicPartition]) -> None:
    least, more = divmod(total, len(kept)) if kept else (0, 0)
    for some in kept.values():  # who has more than its due keeps one of those that are left over
        due = least + (len(some) > least and more > 0)
        more -= due > least
        while len(some) > due:
            free.append(some.popitem()[0])
    free.sort(reverse=True)
    for some in kept.values():
        while len(some) < least:
            some[free.pop()] = None
    for some in kept.values():
        if free and len(some) == least:
            some[free.pop()] = None


def _readers(wishes: Wishes) -> dict[Id, list[str]]:
    """Who reads each topic; those with the fewest readers first, for they can go nowhere else."""
    found: dict[Id, list[str]] = {}
    for member, wish in wishes.items():
        for topic in wish.topics:
            found.setdefault(topic, []).append(member)
    return dict(sorted(found.items(), key=lambda one: (len(one[1]), one[0])))


def _fair(kept: dict[str, dict[TopicPartition, None]], readers: Mapping[Id, list[str]], partitions: Partitions) -> None:
    free: dict[Id, list[TopicPartition]] = {}
    for one in _free(kept, partitions):
        free.setdefault(one.topic_id, []).append(one)
    for topic, members in readers.items():
        _hand_out(free.get(topic, ()), members, kept)
    held = _held(kept)
    while sum(_level(members, held.get(topic, {}), kept) for topic, members in readers.items()):
        pass  # all topics in turn, and again; each move brings two members closer, so there is a last one


def _hand_out(free: Iterable[TopicPartition], members: list[str], kept: dict[str, dict[TopicPartition, None]]) -> None:
    """Each to who has least."""
    loads = [(len(kept[member]), at, member) for at, member in enumerate(members)]
    heapify(loads)
    for one in free:
        load, at, member = loads[0]
        kept[member][one] = None
        heapreplace(loads, (load + 1, at, member))


def _held(kept: Mapping[str, Iterable[TopicPartition]]) -> dict[Id, dict[str, list[TopicPartition]]]:
    """Who has what of each topic."""
    held: dict[Id, dict[str, list[TopicPartition]]] = {}
    for member, some in kept.items():
        for one in some:
            held.setdefault(one.topic_id, {}).setdefault(member, []).append(one)
    return held


def _level(
    members: list[str], held: dict[str, list[TopicPartition]], kept: dict[str, dict[TopicPartition, None]]
) -> bool:
    """Move partitions of one topic from who has most to who has least; whether that was any good.

    Who has given never takes, nor the other way round: most only falls, least only rises. So each is in its own heap,
    and what the other heap knows of it may be old.
    """
    loads = [len(kept[member]) for member in members]
    if max(loads) - min(loads) < 2:
        return False
    takers = [(load, at) for at, load in enumerate(loads)]
    givers = [(-load, at) for load, at in takers if held.get(members[at])]
    heapify(takers)
    heapify(givers)
    moved = False
    while givers and -givers[0][0] - takers[0][0] >= 2:
        (most, giving), (least, taking) = givers[0], takers[0]
        giver, taker = members[giving], members[taking]
        one = held[giver].pop()
        del kept[giver][one]
        kept[taker][one] = None
        held.setdefault(taker, []).append(one)
        heapreplace(takers, (least + 1, taking))
        if held[giver]:
            heapreplace(givers, (most + 1, giving))
        else:
            heappop(givers)
        moved = True
    return moved
