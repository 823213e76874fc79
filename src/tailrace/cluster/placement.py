"""Which brokers hold a new partition's replicas, its preferred leader first.

Each partition is placed in turn, by what every broker has got so far. A partition of the same topic weighs more than
all others together, because partitions of one topic are busy at the same time: so a new topic spreads over all
brokers, and what does not divide evenly goes to those that hold least.

- The leader is the broker that fewest partitions name first; among equals, in the rack that leads and holds least.
- Each follower is the broker that holds fewest; among equals, in the rack that holds least, and then one that has its
  share of leaderships already: who has not is about to get a replica anyway.
- Racks go before load: while another rack is left, no two replicas of a partition share one. A broker without a rack
  is a rack of its own.
- What is equal in all of this is told apart by a scramble of place and load. It is not chance, the same brokers get the
  same partitions each time; but a broker's partitions have their other replicas here and there, so that its work
  falls on many when it dies.
"""

from collections.abc import Sequence
from typing import Final

from tailrace.cluster.brokers import Broker, Load
from tailrace.model.faults import InvalidReplicationFactor
from tailrace.model.ids import BrokerId

BY_DEFAULT: Final = -1
REPLICAS_BY_DEFAULT_MAX: Final = 3
OWN_WEIGHT: Final = 1 << 32  # of a partition of the same topic, against 1 for one of another

ReplicaList = tuple[BrokerId, ...]


def factor_for(wanted: int, live: int) -> int:
    """How many replicas there will be; -1 asks for three, or as many as there are live brokers."""
    factor = min(REPLICAS_BY_DEFAULT_MAX, live) if wanted == BY_DEFAULT else wanted
    if not 0 < factor <= live:
        raise InvalidReplicationFactor(
            f"replication factor {wanted} cannot be met: it must be from 1 to the number of live brokers, {live}"
        )
    return factor


def place(partitions: int, factor: int, brokers: Sequence[Broker], load: Load, own: Load) -> list[ReplicaList]:
    """Replicas for new partitions, over brokers in the order of their numbers.

    `load` is what there is on each broker, `own` the part of it that belongs to the same topic."""
    scales = _Scales(brokers, load, own)
    return [scales.place(factor) for _ in range(partitions)]


def widen(
    places: Sequence[ReplicaList], factor: int, brokers: Sequence[Broker], load: Load, own: Load
) -> list[ReplicaList]:
    """More replicas for partitions that have fewer than `factor`. Whoever leads least of them becomes the first."""
    scales = _Scales(brokers, load, own)
    return [scales.widen(one, factor) for one in places]


class _Scales:
    """What each broker holds, with the order in which they are chosen kept beside it."""

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
    """A number that tells little about the two it is made of: what a multiplicative hash is for."""
    mixed = (broker * 0x9E3779B1 + held * 0x85EBCA77) & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
    return mixed ^ mixed >> 12
