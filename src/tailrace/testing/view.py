"""A cluster as one broker sees it: DescribeCluster and Metadata, asked of any broker that speaks Kafka's protocol.

Two brokers may see different things: one that is cut off knows nothing of what happened since. So a view is what *it*
says, and who wants to know more asks the others. It is asked with a plain socket that waits: tests call this from
threads and from inside event loops alike.
"""

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tailrace.model.limits import frame_max_bytes
from tailrace.wire.compile import decode_whole, encode_into, is_flexible
from tailrace.wire.framing import length_bytes, length_layout
from tailrace.wire.headers import read_response_header, request_header
from tailrace.wire.messages import messages
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

client_id = "tailrace-view"
look_timeout_s = 2.0


class NoView(ConnectionError):
    """The broker could not be asked, or its answer makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    cluster_id: str
    controller: int | None
    brokers: tuple[BrokerView, ...]
    partitions: tuple[PartitionView, ...]

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        for one in self.partitions:
            if (one.topic, one.partition) == (topic, partition):
                return one
        return None

    def why_unwell(self, brokers: int) -> str:
        """What is missing until so many brokers are up, one controls, and every partition is led and whole; or ""."""
        up = [one.id for one in self.brokers if not one.is_fenced]
        if len(up) < brokers:
            return f"only {_numbers(up) or 'none'} of {brokers} brokers are up"
        if self.controller not in up:
            return "no controller leads"
        for one in self.partitions:
            if one.leader not in up:
                return f"partition {one.partition} of {one.topic} has no leader"
            if one.is_under_replicated:
                wanted = _numbers(one.replicas)
                return (
                    f"of partition {one.partition} of {one.topic} only {_numbers(one.in_sync)} of {wanted} are in sync"
                )
        return ""


def look(host: str, port: int, *, timeout_s: float = look_timeout_s) -> ClusterView:
    """Ask one broker. `NoView` when it does not answer in this time."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            versions = _versions(connection)
            cluster = _ask(connection, DescribeClusterRequest(include_fenced_brokers=True), versions)
            known = _ask(connection, MetadataRequest(topics=None, allow_auto_topic_creation=False), versions)
    except (OSError, WireError) as error:
        raise NoView(f"{host}:{port}: {getattr(error, 'strerror', None) or error}") from error
    return ClusterView(
        cluster_id=cluster.cluster_id,
        controller=cluster.controller_id if cluster.controller_id >= 0 else None,
        brokers=tuple(_brokers(cluster)),
        partitions=tuple(_partitions(known)),
    )


def look_at_any(addresses: Iterable[tuple[str, int]], *, timeout_s: float = look_timeout_s) -> ClusterView:
    """Ask one after the other until one answers. `NoView` of the last when none does."""
    failure = NoView("there is no broker to ask")
    for host, port in addresses:
        try:
            return look(host, port, timeout_s=timeout_s)
        except NoView as error:
            failure = error
    raise failure


def _numbers(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))


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


def _versions(connection: socket.socket) -> dict[int, int]:
    """The last version of each API that both sides speak; ApiVersions itself is answered in version 0 by everybody."""
    asked = declaration(ApiVersionsRequest).number
    offered = _ask(connection, ApiVersionsRequest(), {asked: 0}).api_keys
    return {
        one.api_key: min(one.max_version, messages[one.api_key].versions.last)
        for one in offered
        if one.api_key in messages
    }


def _ask(connection: socket.socket, request: object, versions: dict[int, int]) -> Any:
    api_key = declaration(type(request)).number
    if api_key not in versions:
        raise WireError(f"the broker does not know {messages[api_key].name}")
    version, response = versions[api_key], messages[api_key].response
    frame = bytearray(length_bytes)
    frame += request_header(api_key, version, api_key, client_id, is_flexible(type(request), version))
    encode_into(frame, request, version)
    length_layout.pack_into(frame, 0, len(frame) - length_bytes)
    connection.sendall(frame)
    (length,) = length_layout.unpack(_read(connection, length_bytes))
    if not 0 < length <= frame_max_bytes:
        raise WireError(f"an answer of {length} bytes")
    answer = _read(connection, length)
    _, at = read_response_header(answer, 0, api_key, is_flexible(response, version))
    return decode_whole(response, version, answer, at)


def _read(connection: socket.socket, count: int) -> bytes:
    got = bytearray()
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            raise WireError("the connection ended before the answer did")
        got += more
    return bytes(got)
