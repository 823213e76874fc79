"""Replica placement: which brokers get the replicas of new partitions, the preferred leader first.

Partitions are placed one after the other, by the load of each broker so far. A partition of the same topic weighs more
than all partitions of other topics together, because partitions of one topic are busy at the same time. So a new topic
spreads over all brokers, and the remainder of the division goes to the least loaded ones.

- The leader is the broker that is preferred leader of the fewest partitions; among equals, one in the rack with the
  fewest leaders and replicas.
- Each follower is the broker with the fewest replicas; among equals, one in the rack with the fewest replicas, then the
  one with the most leaderships: a broker with fewer will get a replica soon anyway, as leader.
- Racks take precedence over load: replicas of a partition share a rack only if there are fewer racks than replicas. A
  broker without a rack counts as a rack of its own.
- Remaining ties are broken by a hash of broker id and load. It is deterministic: the same brokers always get the same
  partitions. But the other replicas of a broker's partitions are on many brokers, which share its work when it fails.
"""

from collections.abc import Sequence
from typing import Final

from tailrace.cluster.brokers import Broker, Load
from tailrace.model.faults import InvalidReplicationFactor
from tailrace.model.ids import BrokerId

BY_DEFAULT: Final = -1
REPLICAS_BY_DEFAULT_MAX: Final = 3
OWN_WEIGHT: Final = 1 << 32  # the weight of a partition of the same topic; one of another topic has 1

ReplicaList = tuple[BrokerId, ...]


def factor_for(wanted: int, live: int) -> int:
    """The replication factor for a requested one; -1: three, or the number of live brokers if it is less."""
    factor = min(REPLICAS_BY_DEFAULT_MAX, live) if wanted == BY_DEFAULT else wanted
    if not 0 < factor <= live:
        raise InvalidReplicationFactor(
            f"The target replication factor of {wanted} cannot be reached: it must be from 1 to the number of live "
            f"brokers, {live}"
        )
    return factor


def place(partitions: int, factor: int, brokers: Sequence[Broker], load: Load, own: Load) -> list[ReplicaList]:
    """Replicas for new partitions, on brokers in the order of their ids.

    `load` is the current load of each broker, `own` the part of it that belongs to the same topic.
    """
    scales = _Scales(brokers, load, own)
    return [scales.place(factor) for _ in range(partitions)]


def widen(
    places: Sequence[ReplicaList], factor: int, brokers: Sequence[Broker], load: Load, own: Load
) -> list[ReplicaList]:
    """Add replicas to partitions with fewer than `factor`; the replica with the fewest leaderships comes first."""
    scales = _Scales(brokers, load, own)
    return [scales.widen(one, factor) for one in places]


class _Scales:
    """The load of each broker, and the sort keys by which brokers are chosen."""

    def __init__(self, brokers: Sequence[Broker], load: Load, own: Load) -> None:
        self._brokers = [broker.id for broker in brokers]
        self._held = {one: load.replicas.get(one, 0) + OWN_WEIGHT * own.replicas.get(one, 0) for one in self._brokers}
        self._led = {one: load.preferred.get(one, 0) + OWN_WEIGHT * own.preferred.get(one, 0) for one in self._brokers}
        self._tie = {one: _scramble(one, held) for one, held in self._held.items()}
        self._rack = {broker.id: broker.id if broker.rack is None else broker.rack for broker in brokers}
        self._members: dict[str | BrokerId, list[BrokerId]] = {}
        for one, rack in self._rack.items():
            self._members.setdefault(rack, []).append(one)
        self._as_leader: dict[BrokerId, tuple[float, ...]] = {}
        self._as_follower: dict[BrokerId, tuple[float, ...]] = {}
        for rack in self._members:
            self._weigh(rack)

    def place(self, factor: int) -> ReplicaList:
        chosen = self._fill([min(self._brokers, key=self._as_leader.__getitem__)], factor)
        self._add(chosen[0], chosen)
        return tuple(chosen)

    def widen(self, held: ReplicaList, factor: int) -> ReplicaList:
        chosen = self._fill(list(held), factor)
        self._led[held[0]] -= OWN_WEIGHT + 1
        first = min(chosen, key=self._led.__getitem__)
        self._add(first, chosen[len(held) :])
        return (first, *(one for one in chosen if one != first))

    def _fill(self, chosen: list[BrokerId], factor: int) -> list[BrokerId]:
        left = self._brokers
        for one in chosen[:-1]:
            left = self._elsewhere(left, one)
        while len(chosen) < factor:
            left = self._elsewhere(left, chosen[-1]) or [one for one in self._brokers if one not in chosen]
            chosen.append(min(left, key=self._as_follower.__getitem__))
        return chosen

    def _elsewhere(self, brokers: Sequence[BrokerId], taken: BrokerId) -> list[BrokerId]:
        racks, rack = self._rack, self._rack[taken]
        return [one for one in brokers if racks[one] != rack]

    def _add(self, leader: BrokerId, more: Sequence[BrokerId]) -> None:
        self._led[leader] += OWN_WEIGHT + 1
        for one in more:
            self._held[one] += OWN_WEIGHT + 1
            self._tie[one] = _scramble(one, self._held[one])
        for rack in dict.fromkeys(self._rack[one] for one in (leader, *more)):
            self._weigh(rack)

    def _weigh(self, rack: str | BrokerId) -> None:
        members = self._members[rack]
        rack_held = sum(self._held[one] for one in members) / len(members)
        rack_led = sum(self._led[one] for one in members) / len(members)
        for one in members:
            held, led, tie = self._held[one], self._led[one], self._tie[one]
            self._as_leader[one] = (led, rack_led, rack_held, held, tie)
            self._as_follower[one] = (held, rack_held, -led, -rack_led, tie)


def _scramble(broker: int, held: int) -> int:
    """A multiplicative hash of a broker id and its load, to break ties."""
    mixed = (broker * 0x9E3779B1 + held * 0x85EBCA77) & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
    return mixed ^ mixed >> 12
