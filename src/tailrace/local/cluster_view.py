"""A cluster as one broker describes it: the answers to DescribeCluster, DescribeQuorum and Metadata.

Works with any broker that speaks Kafka's protocol. Two brokers may describe different states: a broker that is cut off
from the others answers with what it knew before. So a view is one broker's answer; for more, ask the other brokers.
"""

import ssl
from collections.abc import Iterable, Iterator
from typing import Final

from tailrace.client.blocking_driver import BlockingConnection
from tailrace.client.faults import ClientError, ConnectionLost
from tailrace.client.sasl import Sasl
from tailrace.client.secured_connection import open_connection
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.topics import METADATA_TOPIC
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tailrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tailrace.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionToDescribe, TopicToDescribe
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse
from tailrace.wire.schema import declaration

CLIENT_ID: Final = "tailrace-view"
LOOK_TIMEOUT_S: Final = 2.0
VOTERS_TIMEOUT_S: Final = 1.0  # the broker asks the controller, which does not answer a broker that is cut off
VOTERS_WANTED: Final = 3  # of the metadata quorum, from the third broker on; before that there is one


class NoView(ConnectionError):
    """The broker could not be reached, or its answer could not be decoded."""


@frozen
class BrokerView:
    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


@frozen
class PartitionView:
    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)


@frozen
class ClusterView:
    cluster_id: str
    controller: int | None
    voters: tuple[int, ...] | None  # of the metadata quorum; None when not asked for, or the broker has no such API
    brokers: tuple[BrokerView, ...]
    partitions: tuple[PartitionView, ...]

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        for one in self.partitions:
            if (one.topic, one.partition) == (topic, partition):
                return one
        return None

    def why_unwell(self, brokers: int) -> str:
        """Why the cluster is not healthy; "" when so many brokers are up, one of them is the controller, and every
        partition has a leader and all replicas in sync."""
        up = [one.id for one in self.brokers if not one.is_fenced]
        if len(up) < brokers:
            return f"only {_numbers(up) or 'none'} of {brokers} brokers are up"
        if self.controller not in up:
            return "there is no controller"
        if self.voters is not None and brokers >= VOTERS_WANTED > len(self.voters):
            return f"only {_numbers(self.voters) or 'none'} of {VOTERS_WANTED} are voters of the metadata quorum"
        for one in self.partitions:
            if one.leader not in up:
                return f"partition {one.partition} of {one.topic} has no leader"
            if one.is_under_replicated:
                wanted = _numbers(one.replicas)
                return (
                    f"of partition {one.partition} of {one.topic} only {_numbers(one.in_sync)} of {wanted} are in sync"
                )
        return ""


def look(
    host: str,
    port: int,
    *,
    timeout_s: float = LOOK_TIMEOUT_S,
    ask_voters: bool = True,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
) -> ClusterView:
    """Ask one broker. `NoView` when it does not answer in this time. `ask_voters` sends DescribeQuorum, too."""
    try:
        with open_connection(Address(host, port), timeout_s, client_id=CLIENT_ID, tls=tls, sasl=sasl) as connection:
            cluster = connection.ask(DescribeClusterRequest(include_fenced_brokers=True))
            known = connection.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
            voters = _voters(connection) if ask_voters else None
    except (OSError, ClientError) as error:
        raise NoView(f"{host}:{port}: {getattr(error, 'strerror', None) or error}") from error
    return ClusterView(
        cluster_id=cluster.cluster_id,
        controller=cluster.controller_id if cluster.controller_id >= 0 else None,
        voters=voters,
        brokers=tuple(_brokers(cluster)),
        partitions=tuple(_partitions(known)),
    )


def look_at_any(
    addresses: Iterable[tuple[str, int]],
    *,
    timeout_s: float = LOOK_TIMEOUT_S,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
) -> ClusterView:
    """Ask one broker after the other until one answers. `NoView` of the last one when none does."""
    failure = NoView("no address was given")
    for host, port in addresses:
        try:
            return look(host, port, timeout_s=timeout_s, tls=tls, sasl=sasl)
        except NoView as error:
            failure = error
    raise failure


@frozen
class DamageView:
    """A damaged replica, as its broker describes it until it is repaired."""

    topic: str
    partition: int
    broker: int
    where: str  # file, position, offset and reason


def damaged_replicas(
    brokers: Iterable[BrokerView], *, timeout_s: float = LOOK_TIMEOUT_S, tls: ssl.SSLContext | None, sasl: Sasl | None
) -> tuple[DamageView, ...]:
    """Ask every broker that is up; one that does not answer, or has no such API, is left out."""
    return tuple(
        found for broker in brokers if not broker.is_fenced for found in _damage(broker, timeout_s, tls=tls, sasl=sasl)
    )


def _damage(
    broker: BrokerView, timeout_s: float, *, tls: ssl.SSLContext | None, sasl: Sasl | None
) -> Iterator[DamageView]:
    request, address = DescribeLogDirsRequest(topics=None), Address(broker.host, broker.port)
    try:
        with open_connection(address, timeout_s, client_id=CLIENT_ID, tls=tls, sasl=sasl) as connection:
            if not connection.exchange.offers(declaration(type(request)).number):
                return
            answer = connection.ask(request)
    except (OSError, ClientError):
        return
    for folder in answer.results:
        for topic in folder.topics:
            for one in topic.partitions:
                if one.damage:
                    yield DamageView(topic=topic.name, partition=one.partition, broker=broker.id, where=one.damage)


def _numbers(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))


def _voters(connection: BlockingConnection) -> tuple[int, ...] | None:
    """None when the broker does not have DescribeQuorum; empty when it does not answer, as without a controller."""
    wanted = TopicToDescribe(name=METADATA_TOPIC, partitions=(PartitionToDescribe(partition=0),))
    request = DescribeQuorumRequest(topics=(wanted,))
    if not connection.exchange.offers(declaration(type(request)).number):
        return None
    connection.set_timeout(VOTERS_TIMEOUT_S)
    try:
        answer = connection.ask(request)
    except ConnectionLost as lost:
        if isinstance(lost.__cause__, TimeoutError):
            return ()
        raise
    return tuple(
        sorted(voter.replica_id for topic in answer.topics for one in topic.partitions for voter in one.current_voters)
    )


def _brokers(cluster: DescribeClusterResponse) -> Iterator[BrokerView]:
    for one in sorted(cluster.brokers, key=lambda one: one.broker_id):
        yield BrokerView(id=one.broker_id, host=one.host, port=one.port, rack=one.rack, is_fenced=one.is_fenced)


def _partitions(known: MetadataResponse) -> Iterator[PartitionView]:
    for topic in sorted(known.topics, key=lambda one: one.name or ""):
        for one in sorted(topic.partitions, key=lambda one: one.partition):
            yield PartitionView(
                topic=topic.name or "",
                partition=one.partition,
                leader=one.leader_id if one.leader_id >= 0 else None,
                leader_epoch=one.leader_epoch,
                replicas=one.replicas,
                in_sync=one.isr,
                offline=one.offline_replicas,
            )
