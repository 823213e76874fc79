"""The brokers of a cluster, as the metadata knows them, and how much each of them holds.

A broker is *live* when it has registered with a port for clients and is not fenced. Only live brokers get new replicas.
A fenced broker keeps what it holds: it may come back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tailrace.cluster.features import Features, registered_features
from tailrace.cluster.records import BrokerRegistered
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Id
from tailrace.wire.messages.peers.registered_feature import RegisteredFeature


@frozen
class Broker:
    id: BrokerId
    directory: Id  # its disk; the same broker with another disk is another voter
    incarnation: Id  # another one at each start
    host: str
    kafka_port: int  # 0: it has joined, and does not serve yet; then it is fenced
    peer_host: str
    peer_port: int
    rack: str | None
    fenced: bool
    features: Features  # the levels that it supports, by the feature's name


def registered(record: BrokerRegistered) -> Broker:
    return Broker(
        id=BrokerId(record.broker_id),
        directory=Id(record.directory_id),
        incarnation=Id(record.incarnation_id),
        host=record.host,
        kafka_port=record.kafka_port,
        peer_host=record.peer_host,
        peer_port=record.peer_port,
        rack=record.rack,
        fenced=record.kafka_port == 0,
        features=from_registered(record.features),
    )


def record_of(broker: Broker) -> BrokerRegistered:
    """The record that says this of a broker: `registered` reads it."""
    return BrokerRegistered(
        broker_id=broker.id,
        directory_id=broker.directory,
        incarnation_id=broker.incarnation,
        host=broker.host,
        kafka_port=broker.kafka_port,
        peer_host=broker.peer_host,
        peer_port=broker.peer_port,
        rack=broker.rack,
        features=to_register(broker.features),
    )


def to_register(features: Features) -> tuple[RegisteredFeature, ...]:
    return tuple(RegisteredFeature(name=name, first=one.first, last=one.last) for name, one in features.items())


def from_registered(registered: Sequence[RegisteredFeature]) -> Features:
    return registered_features((one.name, one.first, one.last) for one in registered)


@dataclass(slots=True)
class Load:
    """What has been placed on each broker, counted as it is placed, so that placing costs nothing per old partition."""

    replicas: dict[BrokerId, int] = field(default_factory=dict)  # how many partitions it holds
    preferred: dict[BrokerId, int] = field(default_factory=dict)  # how many of those name it first

    def add(self, replicas: Sequence[BrokerId]) -> None:
        self._count(replicas, 1)

    def remove(self, replicas: Sequence[BrokerId]) -> None:
        self._count(replicas, -1)

    def _count(self, replicas: Sequence[BrokerId], change: int) -> None:
        for broker in replicas:
            self.replicas[broker] = self.replicas.get(broker, 0) + change
        self.preferred[replicas[0]] = self.preferred.get(replicas[0], 0) + change

    def copy(self) -> "Load":
        return Load(self.replicas.copy(), self.preferred.copy())
