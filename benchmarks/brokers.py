"""The servers of one cluster, ours or Kafka's: create topics with a replica on each, and find leaders."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.connection import Refused, delete_topic
from benchmarks.processes import Server, cpu_seconds
from tailrace.client.blocking_driver import BlockingConnection
from tailrace.local.cluster_view import ClusterView, NoView, look
from tailrace.model.addresses import Address
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig

ANSWER_TIMEOUT_SECONDS: Final = 60.0
WELL_TIMEOUT_SECONDS: Final = 120.0
RETRY_PAUSE_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """The servers of a cluster; broker n is the n-th of them, counted from 1."""

    servers: tuple[Server, ...]

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(server.pid for server in self.servers)

    def cpu_seconds(self) -> float:
        """CPU seconds that all brokers have used so far."""
        return sum(map(cpu_seconds, self.pids))

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic with a replica on every broker; wait until each server reports all leaders and a full ISR."""
        self.ask_for_topic(topic, partitions)
        self.wait_until_well()

    def ask_for_topic(self, topic: str, partitions: int) -> None:
        """Send CreateTopics; min.insync.replicas is a majority, as it always is for our brokers."""
        majority = len(self.servers) // 2 + 1
        wanted = NewTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=len(self.servers),
            configs=(NewTopicConfig(name="min.insync.replicas", value=str(majority)),),
        )
        first, timeout = self.servers[0], ANSWER_TIMEOUT_SECONDS
        with BlockingConnection(Address(first.host, first.port), timeout) as connection:
            request = CreateTopicsRequest(topics=(wanted,), timeout_ms=int(timeout * 1000))
            answer = connection.ask(request).topics[0]
        if answer.error_code:
            raise Refused(f"creating topic {topic}: error {answer.error_code}, {answer.error_message}")

    def delete_topic(self, topic: str) -> None:
        """Delete a topic and wait until no server has it in its metadata, so that its name can be used again."""
        first = self.servers[0]
        delete_topic(first.host, first.port, topic)
        self._wait(lambda view: f"topic {topic} still exists" if view.partition(topic, 0) is not None else "")

    def leader(self, topic: str, partition: int = 0) -> Server:
        found = self._look(self.servers[0]).partition(topic, partition)
        if found is None or found.leader is None:
            raise Refused(f"partition {partition} of {topic} has no leader")
        return self.servers[found.leader - 1]

    def wait_until_well(self) -> None:
        """Wait until every server reports: all brokers are up, every partition has a leader and a full ISR."""
        self._wait(lambda view: view.why_unwell(len(self.servers)))

    def wait_until_led(self, topic: str, partitions: int) -> None:
        """Wait until every server knows the leader of each partition of a topic."""

        def missing(view: ClusterView) -> str:
            led = sum(1 for one in view.partitions if one.topic == topic and one.leader is not None)
            return "" if led == partitions else f"{partitions - led} partitions of {topic} have no leader"

        self._wait(missing)

    def _wait(self, missing: Callable[[ClusterView], str]) -> None:
        deadline = time.monotonic() + WELL_TIMEOUT_SECONDS
        for server in self.servers:
            while why := self._ask(server, missing):
                if time.monotonic() > deadline:
                    raise Refused(f"broker at port {server.port} after {WELL_TIMEOUT_SECONDS:g} s: {why}")
                time.sleep(RETRY_PAUSE_SECONDS)

    def _ask(self, server: Server, missing: Callable[[ClusterView], str]) -> str:
        try:
            return missing(self._look(server))
        except NoView as error:
            return str(error)

    def _look(self, server: Server) -> ClusterView:
        return look(server.host, server.port, timeout_s=ANSWER_TIMEOUT_SECONDS)
