"""Who leads what, as clients are told: the newest of what this broker sees itself and what leaders have reported.

A follower hears of a new leader before the controller does, so the later epoch wins. The in-sync set is the leader's
own view, without brokers that are fenced by now.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.image import PartitionPlace, Topic
from tailrace.model.ids import NO_EPOCH, NOBODY, BrokerId, Epoch, TopicPartition
from tailrace.ports import Clock


class PartitionState(NamedTuple):
    """One partition's state for clients."""

    leader: BrokerId  # nobody: none is known, or it is not there
    epoch: Epoch
    replicas: tuple[BrokerId, ...]
    in_sync: tuple[BrokerId, ...]
    offline: tuple[BrokerId, ...]


class Leaders:
    def __init__(self, hosted: HostedPartitions, me: BrokerId, clock: Clock) -> None:
        self._hosted = hosted
        self._me = me
        self._clock = clock

    def of(self, topic: Topic, first: int = 0) -> Sequence[PartitionState]:
        """The partitions of a topic from `first` on."""
        here = self._hosted.by_number(topic.id)
        live = dict.fromkeys(self._hosted.image.live)
        return [
            self._leading(here[index] if index < len(here) else None, topic.partitions[index], live)
            for index in range(first, len(topic.partitions))
        ]

    def first_unled(self, topic: Topic, first: int) -> int:
        """Which is the first of a topic's partitions, from `first` on, that nobody leads; their number: none is."""
        for index in range(first, len(topic.partitions)):
            if self.one(topic, index).leader == NOBODY:
                return index
        return len(topic.partitions)

    def one(self, topic: Topic, index: int) -> PartitionState:
        """One partition of a topic."""
        here = self._hosted.here(TopicPartition(topic.id, index))
        return self._leading(here, topic.partitions[index], dict.fromkeys(self._hosted.image.live))

    def led_by(self, topic: Topic, index: int) -> tuple[BrokerId, Epoch]:
        """Who leads one partition, in which epoch. Every marker asks, so of what is led here no more is looked at."""
        here = self._hosted.here(TopicPartition(topic.id, index))
        if here is not None and here.leads:
            return self._me, here.epoch
        return self.one(topic, index)[:2]

    def hint(self, topic: Topic, index: int) -> tuple[BrokerId, Epoch]:
        """Who leads one partition, in which epoch; nobody when that is not known, or its epoch is not."""
        state = self.one(topic, index)
        return (NOBODY, NO_EPOCH) if state.epoch < 0 or state.leader == NOBODY else (state.leader, state.epoch)

    def _leading(
        self, partition: Partition | None, place: PartitionPlace, live: Mapping[BrokerId, object]
    ) -> PartitionState:
        leader, epoch, in_sync = self._seen(partition, place)
        if leader != self._me and leader not in live:
            leader = NOBODY
        return PartitionState(
            leader,
            epoch,
            place.replicas,
            tuple(one for one in in_sync if one in live) or ((leader,) if leader != NOBODY else ()),
            tuple(one for one in place.replicas if one not in live),
        )

    def _seen(self, partition: Partition | None, place: PartitionPlace) -> tuple[BrokerId, Epoch, tuple[BrokerId, ...]]:
        if partition is not None:
            if partition.leads:
                now = self._clock.monotonic()
                return self._me, partition.epoch, tuple(one.broker for one in partition.replica.in_sync(now))
            if len(place.replicas) == 1:
                return NOBODY, partition.epoch, place.replicas
            if _elects(partition, place):
                return NOBODY, place.epoch, place.in_sync
            if partition.leader is not None and partition.epoch > place.epoch:
                return partition.leader, partition.epoch, place.replicas
        elif len(place.replicas) == 1 and self._me not in place.replicas:
            return place.replicas[0], place.epoch, place.replicas  # nobody else can lead it: not reported
        if place.leader == self._me:
            return NOBODY, place.epoch, place.in_sync  # it was reported, and is over
        return place.leader, place.epoch, place.in_sync


def _elects(partition: Partition, place: PartitionPlace) -> bool:
    """Whether the leader that was reported is over, as this replica knows: clients that are told so ask again soon,
    and wait for the dead when they are not."""
    if partition.leader is None:
        return partition.epoch > place.epoch
    return partition.epoch >= place.epoch and partition.leader_is_gone
