"""The brokers of a cluster, as the metadata knows them, and how much each of them holds.

A broker is *live* when it has registered its Kafka endpoint and is not fenced. Only live brokers get new replicas.
A fenced broker keeps what it holds: it may come back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tailrace.cluster.features import NAMED_ENDPOINTS_LEVEL, Features, registered_features
from tailrace.cluster.records import BrokerRegistered
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Id
from tailrace.model.listeners import KAFKA_LISTENER
from tailrace.wire.messages.peers.register_broker import RegisterBroker
from tailrace.wire.messages.peers.registered_endpoint import RegisteredEndpoint
from tailrace.wire.messages.peers.registered_feature import RegisteredFeature

Endpoints = Mapping[str, Address]  # where clients reach each listener, by the listener's name


@frozen
class Broker:
    id: BrokerId
    directory: Id  # its disk; the same broker with another disk is another voter
    incarnation: Id  # another one at each start
    endpoints: Endpoints  # empty: it has joined, and does not serve yet; then it is fenced
    peer_host: str
    peer_port: int
    rack: str | None
    fenced: bool
    features: Features  # the levels that it supports, by the feature's name

    @property
    def host(self) -> str:
        """Where Kafka's clients reach it; while it does not serve yet, where peers do."""
        return self.endpoints[KAFKA_LISTENER].host if KAFKA_LISTENER in self.endpoints else self.peer_host

    @property
    def kafka_port(self) -> int:
        """0: it has joined, and does not serve yet."""
        return self.endpoints[KAFKA_LISTENER].port if KAFKA_LISTENER in self.endpoints else 0


def registered(record: BrokerRegistered | RegisterBroker) -> Broker:
    """The broker that a record or a request describes."""
    endpoints = from_registered_endpoints(record.endpoints, record.host, record.kafka_port)
    return Broker(
        id=BrokerId(record.broker_id),
        directory=Id(record.directory_id),
        incarnation=Id(record.incarnation_id),
        endpoints=endpoints,
        peer_host=record.peer_host,
        peer_port=record.peer_port,
        rack=record.rack,
        fenced=KAFKA_LISTENER not in endpoints,
        features=from_registered_features(record.features),
    )


def record_of(broker: Broker, level: int) -> BrokerRegistered:
    """The record that says this of a broker, as far as a level of metadata.version lets it: `registered` reads it."""
    is_named = level >= NAMED_ENDPOINTS_LEVEL
    return BrokerRegistered(
        broker_id=broker.id,
        directory_id=broker.directory,
        incarnation_id=broker.incarnation,
        host="" if is_named else broker.host,
        kafka_port=0 if is_named else broker.kafka_port,
        endpoints=endpoints_to_register(broker.endpoints) if is_named else (),
        peer_host=broker.peer_host,
        peer_port=broker.peer_port,
        rack=broker.rack,
        features=features_to_register(broker.features),
    )


def endpoints_to_register(endpoints: Endpoints) -> tuple[RegisteredEndpoint, ...]:
    return tuple(RegisteredEndpoint(name=name, host=one.host, port=one.port) for name, one in endpoints.items())


def from_registered_endpoints(named: Sequence[RegisteredEndpoint], host: str, kafka_port: int) -> Endpoints:
    """Endpoints as a record or request has them: by name, or in version 0 only that of the Kafka listener."""
    if named:
        return MappingProxyType({one.name: Address(one.host, one.port) for one in named})
    return MappingProxyType({KAFKA_LISTENER: Address(host, kafka_port)} if kafka_port else {})


def features_to_register(features: Features) -> tuple[RegisteredFeature, ...]:
    return tuple(RegisteredFeature(name=name, first=one.first, last=one.last) for name, one in features.items())


def from_registered_features(registered: Sequence[RegisteredFeature]) -> Features:
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
