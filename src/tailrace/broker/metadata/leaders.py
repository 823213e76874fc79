"""Leader, epoch and ISR of partitions, as sent to clients: the newer of this broker's own view and the leader's report.

A follower knows a new leader before the controller does, so the higher epoch wins. The ISR is the leader's own view,
without brokers that have been fenced since.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.image import PartitionPlace, Topic
from tailrace.model.ids import NO_BROKER, NO_EPOCH, BrokerId, Epoch, TopicPartition
from tailrace.ports import Clock


class PartitionState(NamedTuple):
    """One partition's state, as sent to clients."""

    leader: BrokerId  # NO_BROKER: not known, or not live
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
            self._state(here[index] if index < len(here) else None, topic.partitions[index], live)
            for index in range(first, len(topic.partitions))
        ]

    def first_unled(self, topic: Topic, first: int) -> int:
        """The first partition of a topic, from `first` on, without a leader; the partition count if all have one."""
        for index in range(first, len(topic.partitions)):
            if self.one(topic, index).leader == NO_BROKER:
                return index
        return len(topic.partitions)

    def one(self, topic: Topic, index: int) -> PartitionState:
        """One partition of a topic."""
        here = self._hosted.here(TopicPartition(topic.id, index))
        return self._state(here, topic.partitions[index], dict.fromkeys(self._hosted.image.live))

    def led_by(self, topic: Topic, index: int) -> tuple[BrokerId, Epoch]:
        """Leader and epoch of one partition. Called for every transaction marker, so cheap if this broker leads."""
        here = self._hosted.here(TopicPartition(topic.id, index))
        if here is not None and here.leads:
            return self._me, here.epoch
        return self.one(topic, index)[:2]

    def hint(self, topic: Topic, index: int) -> tuple[BrokerId, Epoch]:
        """Leader and epoch of one partition; (NO_BROKER, NO_EPOCH) unless both are known."""
        state = self.one(topic, index)
        return (NO_BROKER, NO_EPOCH) if state.epoch < 0 or state.leader == NO_BROKER else (state.leader, state.epoch)

    def _state(
        self, partition: Partition | None, place: PartitionPlace, live: Mapping[BrokerId, object]
    ) -> PartitionState:
        leader, epoch, in_sync = self._leader_and_isr(partition, place)
        if leader != self._me and leader not in live:
            leader = NO_BROKER
        return PartitionState(
            leader,
            epoch,
            place.replicas,
            tuple(one for one in in_sync if one in live) or ((leader,) if leader != NO_BROKER else ()),
            tuple(one for one in place.replicas if one not in live),
        )

    def _leader_and_isr(
        self, partition: Partition | None, place: PartitionPlace
    ) -> tuple[BrokerId, Epoch, tuple[BrokerId, ...]]:
        if partition is not None:
            if partition.leads:
                now = self._clock.monotonic()
                return self._me, partition.epoch, tuple(one.broker for one in partition.replica.in_sync(now))
            if len(place.replicas) == 1:
                return NO_BROKER, partition.epoch, place.replicas
            if _is_electing(partition, place):
                return NO_BROKER, place.epoch, place.in_sync
            if partition.leader is not None and partition.epoch > place.epoch:
                return partition.leader, partition.epoch, place.replicas
        elif len(place.replicas) == 1 and self._me not in place.replicas:
            return place.replicas[0], place.epoch, place.replicas  # no other broker can lead it, so it is not reported
        if place.leader == self._me:
            return NO_BROKER, place.epoch, place.in_sync  # reported earlier; this broker leads it no longer
        return place.leader, place.epoch, place.in_sync


def _is_electing(partition: Partition, place: PartitionPlace) -> bool:
    """Whether this replica knows that the reported leader is gone. Clients that get no leader soon ask again; clients
    that get a dead one wait for its timeout."""
    if partition.leader is None:
        return partition.epoch > place.epoch
    return partition.epoch >= place.epoch and partition.member.leader_is_gone
