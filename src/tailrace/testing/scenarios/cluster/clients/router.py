"""How a client finds its way in a cluster: Metadata from any broker, a connection to each, hints when it is wrong.

Answers may be old, and brokers may be gone. So whoever asks is told what is believed, tries, and asks anew.
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
PATIENCE_SECONDS: Final = 1.5  # virtual; clients of a broker that is gone move on


@frozen
class PartitionLocation:
    """One partition, as some broker described it."""

    topic_id: Id
    leader: str | None  # its host; None: nobody leads
    replicas: tuple[str, ...]


class Router:
    def __init__(self, ports: Ports, rng: random.Random, name: str, hosts: Callable[[], Sequence[str]]) -> None:
        self.ports = ports
        self.rng = rng
        self.name = name
        self.hosts = hosts  # all that there are, up or not
        self._clients: dict[str, ReconnectingClient] = {}

    async def ask(self, host: str, request: object, version: int) -> Any | None:
        return (await self.ask_each(host, [request], version))[0]

    async def ask_each(self, host: str, requests: Sequence[object], version: int) -> list[Any | None]:
        if host not in self._clients:
            self._clients[host] = ReconnectingClient(self.ports, self.name, host, PATIENCE_SECONDS)
        return await self._clients[host].call_pipelined(requests, version)

    async def ask_anyone(self, request: object, version: int) -> Any | None:
        return await self.ask(self.any_host(), request, version)

    def any_host(self) -> str:
        return self.rng.choice(self.hosts())

    async def describe(self, topics: Sequence[str] | None) -> MetadataResponse | None:
        wanted = None if topics is None else tuple(TopicWanted(name=topic) for topic in topics)
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer: MetadataResponse | None = await self.ask_anyone(request, METADATA_VERSION)
        return answer

    async def find(self, topic: str, partition: int) -> PartitionLocation | None:
        """Where a partition is; None: nobody answers, or there is no such topic as far as that broker knows."""
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
