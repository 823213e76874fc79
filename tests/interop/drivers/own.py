"""Our own client, `tailrace.client`: on an event loop where it writes, blocking where it asks.

It has no column in the ledger, which is about foreign clients. Its tests run against Apache Kafka, too.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from tailrace.client.admin import create_topics, list_topics
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.driver import run_blocking
from tailrace.client.group_admin import all_committed_offsets
from tailrace.client.producer import Producer
from tailrace.model.addresses import parse_addresses
from tailrace.ports import system_ports
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig
from tests.interop.client import Client
from tests.interop.member import Member, in_python
from tests.interop.messages import AS_USUAL, Message, Sending
from tests.interop.shapes import ONE_PARTITION, TopicPlan

T = TypeVar("T")

LIMITS = Limits(request_s=10.0, retry_s=30.0)


class OwnClient(Client):
    name = "tailrace.client"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.cluster = Cluster(BlockingDriver(), parse_addresses(bootstrap), LIMITS)

    def close(self) -> None:
        self.cluster.close()

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        return run_blocking(work)

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = AS_USUAL, partition: int = 0
    ) -> list[int]:
        async def work() -> list[int]:
            ports = system_ports()
            driver = AsyncioDriver(ports.net, ports.clock, ports.random)
            cluster = Cluster(driver, parse_addresses(self.bootstrap), LIMITS)
            async with Producer(cluster) as producer:
                sent = [
                    await producer.send(
                        topic, one.value, key=one.key, partition=partition, timestamp_ms=one.timestamp_ms
                    )
                    for one in messages
                ]
                offsets = [(await one).offset for one in sent]
            cluster.close()
            return offsets

        return asyncio.run(work())

    def member(self, topic: str, group: str, strategy: str = "range", instance: str = "") -> Member:
        return Member(in_python("own"), self.bootstrap, topic, group, strategy, instance)

    def create_topic(self, topic: str, plan: TopicPlan = ONE_PARTITION, *, validate_only: bool = False) -> None:
        assert not validate_only
        configs = tuple(NewTopicConfig(name=name, value=value) for name, value in plan.settings.items())
        wanted = NewTopic(
            name=topic, num_partitions=plan.partitions, replication_factor=plan.replication, configs=configs
        )
        refused = self.ask(create_topics(self.cluster, [wanted]))[topic]
        if refused is not None:
            raise refused

    def list_topics(self) -> list[str]:
        return [one.name or "" for one in self.ask(list_topics(self.cluster))]

    def committed(self, group: str, topic: str) -> Mapping[int, int]:  # type: ignore[override]
        found = self.ask(all_committed_offsets(self.cluster, group))
        return {one.partition: offset for one, offset in found.items() if one.topic == topic}
