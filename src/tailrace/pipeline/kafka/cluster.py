"""A Kafka client's view of the cluster: its topics, the leader of each partition, and requests with retries.

Leaders move and brokers restart. A request that fails for such a reason is sent again, with fresh metadata, until it
succeeds or the time limit is reached. An error that is not retriable is raised at once.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from tailrace.model.addresses import parse_addresses
from tailrace.pipeline.failure import NoBrokerAvailable, NoSuchTopic, PipelineFailed
from tailrace.pipeline.kafka.connection import Connection
from tailrace.pipeline.kafka.security import PLAINTEXT, Security, tls_context
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted

T = TypeVar("T")

RETRY_TIMEOUT_S: Final = 60.0  # how long a request is retried
RETRY_PAUSE_S: Final = 0.05
REQUEST_TIMEOUT_S: Final = 30.0


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RetriableError(Exception):
    """A retriable error: the same request may succeed later."""


class Cluster:
    def __init__(
        self,
        bootstrap: str,
        security: Security = PLAINTEXT,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        retry_timeout_s: float = RETRY_TIMEOUT_S,
    ) -> None:
        try:
            self._bootstrap = parse_addresses(bootstrap)
        except ValueError as error:
            raise PipelineFailed(f"kafka.bootstrap.servers = {bootstrap!r}: {error}") from None
        self._tls = None if security.tls is None else tls_context(security.tls)
        self._sasl = security.sasl
        self._timeout_s = timeout_s
        self.retry_timeout_s = retry_timeout_s
        self._connections: dict[tuple[str, int], Connection] = {}
        self._leaders: dict[TopicPartition, tuple[str, int]] = {}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections = {}

    def partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        """All partitions of these topics; `NoSuchTopic` when a topic does not exist."""
        return self.with_retries(lambda: self._partitions(topics))

    def partitions_matching(self, pattern: str) -> list[TopicPartition]:
        """All partitions of the topics whose whole name matches the pattern, without internal topics."""
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise PipelineFailed(f"subscribePattern = {pattern!r} is no regular expression: {error}") from None
        answer = self.with_retries(lambda: self._metadata(None))
        names = [one.name for one in answer.topics if not one.is_internal and wanted.fullmatch(one.name)]
        return self.partitions(sorted(names)) if names else []

    def call_any(self, request: object) -> Any:
        """Send a request to any broker that can be reached."""
        return self.with_retries(lambda: self._any_broker().call(request))

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        """The number of partitions of each of these topics that exists. Nothing is retried: see `call_once`."""
        answer = self.call_once(_metadata_request(topics))
        there = [one for one in answer.topics if one.error_code != Error.UNKNOWN_TOPIC_OR_PARTITION]
        for one in there:
            if not Error(one.error_code).retriable:  # retriable, as during a leader election: the topic exists
                check(one.error_code, f"find topic {one.name}")
        return {one.name: len(one.partitions) for one in there}

    def names(self) -> list[str]:
        """The names of all topics except internal ones. Nothing is retried: see `call_once`."""
        return sorted(one.name for one in self.call_once(_metadata_request(None)).topics if not one.is_internal)

    def call_once(self, request: object) -> Any:
        """Send a request to the bootstrap addresses in turn, each once, until one answers.

        `NoBrokerAvailable`, with the reason for each address, when none does: a user who waits for the result should
        learn this at once."""
        reasons = []
        for host, port in self._bootstrap:
            try:
                return self._connection(host, port).call(request)
            except NoBrokerAvailable as silent:
                self.close()
                reasons.append(str(silent))
        raise NoBrokerAvailable("; ".join(reasons))

    def leader(self, partition: TopicPartition) -> Connection:
        """A connection to the leader of a partition."""
        if partition not in self._leaders:
            self._partitions([partition.topic])
        if partition not in self._leaders:
            raise RetriableError(f"{partition} has no leader")
        return self._connection(*self._leaders[partition])

    def coordinator(self, key: str, key_type: int) -> Connection:
        """A connection to the coordinator of a group (0) or a transactional id (1)."""
        found = self._any_broker().call(FindCoordinatorRequest(key=key, key_type=key_type))
        check(found.error_code, f"find the coordinator of {key}")
        return self._connection(found.host, found.port)

    def by_leader(self, partitions: Sequence[TopicPartition]) -> dict[Connection, list[TopicPartition]]:
        groups: dict[Connection, list[TopicPartition]] = {}
        for partition in partitions:
            groups.setdefault(self.leader(partition), []).append(partition)
        return groups

    def with_retries(self, ask: Callable[[], T]) -> T:
        """Call `ask` until it succeeds, for at most `retry_timeout_s`, with new metadata after each retriable error."""
        deadline = time.monotonic() + self.retry_timeout_s
        while True:
            try:
                return ask()
            except (RetriableError, NoBrokerAvailable) as why:
                self.close()
                self._leaders = {}
                if time.monotonic() > deadline:
                    raise NoBrokerAvailable(f"{why}; given up after {self.retry_timeout_s:g} s") from None
                time.sleep(RETRY_PAUSE_S)

    def _partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        answer = self._metadata(topics)
        brokers: Mapping[int, tuple[str, int]] = {one.node_id: (one.host, one.port) for one in answer.brokers}
        found = []
        for topic in answer.topics:
            if topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise NoSuchTopic(f"there is no topic {topic.name}; `tailrace topic list` shows what is there")
            check(topic.error_code, f"find topic {topic.name}")
            for one in topic.partitions:
                partition = TopicPartition(topic.name, one.partition)
                found.append(partition)
                if one.leader_id in brokers:
                    self._leaders[partition] = brokers[one.leader_id]
        return sorted(found)

    def _metadata(self, topics: Sequence[str] | None) -> Any:
        return self._any_broker().call(_metadata_request(topics))

    def _any_broker(self) -> Connection:
        for connection in self._connections.values():
            return connection
        reasons = []
        for host, port in self._bootstrap:
            try:
                return self._connection(host, port)
            except NoBrokerAvailable as silent:
                reasons.append(str(silent))
        raise NoBrokerAvailable("; ".join(reasons))

    def _connection(self, host: str, port: int) -> Connection:
        if (host, port) not in self._connections:
            self._connections[host, port] = Connection(host, port, self._timeout_s, self._tls, self._sasl)
        return self._connections[host, port]


def _metadata_request(topics: Sequence[str] | None) -> MetadataRequest:
    """A metadata request for these topics, or for all topics when `topics` is None."""
    wanted = None if topics is None else tuple(TopicWanted(name=name) for name in topics)
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def check(code: int, what: str) -> None:
    """Raise `RetriableError` or `PipelineFailed` if the code is not NONE; `what` says what was attempted."""
    if code == Error.NONE:
        return
    error = Error(code)
    if error.retriable:
        raise RetriableError(f"cannot {what}: {error.name}")
    raise PipelineFailed(f"cannot {what}: the broker says {error.name}")
