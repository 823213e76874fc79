"""A client's connections to all brokers of a cluster, and its lookups of partitions with Metadata.

Metadata may be stale and brokers may be down: callers try the location they were given, and look it up again.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from tailrace.model.frozen import frozen
from tailrace.model.ids import Id
from tailrace.ports import Ports
from tailrace.testing.scenarios.reconnecting_client import ReconnectingClient
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse, TopicWanted

METADATA_VERSION: Final = 12
RESPONSE_MAX_SECONDS: Final = 1.5  # virtual; short, so that clients soon turn from a broker that is down


@frozen
class PartitionLocation:
    """Where a partition is, as one broker's Metadata response says."""

    topic_id: Id
    leader: str | None  # its host; None: no leader
    replicas: tuple[str, ...]  # their hosts


class Router:
    def __init__(self, ports: Ports, rng: random.Random, name: str, hosts: Callable[[], Sequence[str]]) -> None:
        self.ports = ports
        self.rng = rng
        self.name = name
        self.hosts = hosts  # of all brokers, up or down
        self._clients: dict[str, ReconnectingClient] = {}

    async def call(self, host: str, request: object, version: int) -> Any | None:
        return (await self.call_pipelined(host, [request], version))[0]

    async def call_pipelined(self, host: str, requests: Sequence[object], version: int) -> list[Any | None]:
        if host not in self._clients:
            self._clients[host] = ReconnectingClient(self.ports, self.name, host, RESPONSE_MAX_SECONDS)
        return await self._clients[host].call_pipelined(requests, version)

    def disconnect(self) -> None:
        """Close all connections, as the end of the client's process would."""
        for client in self._clients.values():
            client.close()

    async def call_any(self, request: object, version: int) -> Any | None:
        return await self.call(self.any_host(), request, version)

    def any_host(self) -> str:
        return self.rng.choice(self.hosts())

    async def describe(self, topics: Sequence[str] | None) -> MetadataResponse | None:
        wanted = None if topics is None else tuple(TopicWanted(name=topic) for topic in topics)
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer: MetadataResponse | None = await self.call_any(request, METADATA_VERSION)
        return answer

    async def find(self, topic: str, partition: int) -> PartitionLocation | None:
        """Look a partition up with any broker; None if it does not answer or does not know the topic."""
        answer = await self.describe([topic])
        if answer is None or answer.topics[0].error_code != 0:
            return None
        found = [one for one in answer.topics[0].partitions if one.partition == partition]
        if not found:
            return None
        hosts = {broker.node_id: broker.host for broker in answer.brokers}
        return PartitionLocation(
            topic_id=answer.topics[0].topic_id,
            leader=hosts.get(found[0].leader_id),
            replicas=tuple(hosts[one] for one in found[0].replicas if one in hosts),
        )
