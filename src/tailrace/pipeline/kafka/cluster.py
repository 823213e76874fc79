"""A Kafka client's view of the cluster: its topics, the leader of each partition, and requests with retries.

Leaders move and brokers restart. A request that fails for such a reason is sent again, with fresh metadata, until it
succeeds or the time limit is reached. An error that is not retriable is raised at once.
"""

import re
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from tailrace.client import cluster as client
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster_map import UNKNOWN
from tailrace.client.driver import run_blocking
from tailrace.client.faults import ClientError, Refused, Unavailable
from tailrace.client.security import PLAINTEXT, Security, tls_context
from tailrace.model.addresses import Address, parse_addresses
from tailrace.model.ids import PartitionName
from tailrace.pipeline.failure import NoBrokerAvailable, NoSuchTopic, PipelineFailed
from tailrace.pipeline.kafka.connection import Connection
from tailrace.wire.errors import Error
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted

T = TypeVar("T")
TopicPartition = PartitionName  # by its topic's name, as everywhere in the pipeline

RETRY_TIMEOUT_S: Final = 60.0  # how long a request is retried
RETRY_PAUSE_S: Final = 0.05
REQUEST_TIMEOUT_S: Final = 30.0
FIND_TOPIC: Final = "find topic "


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
        limits = client.Limits(request_s=timeout_s, retry_s=retry_timeout_s, pause_min_s=RETRY_PAUSE_S, unknown_s=0.0)
        self.core = client.Cluster(_Driver(self._connect), self._bootstrap, limits)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. The cluster can be used again: it connects anew."""
        self.core.disconnect()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a call of the client, which retries by itself; its errors become the pipeline's."""
        try:
            return run_blocking(work)
        except Refused as refused:
            if refused.error in UNKNOWN and refused.what.startswith(FIND_TOPIC):
                raise _no_such_topic(refused.what.removeprefix(FIND_TOPIC)) from None
            raise PipelineFailed(f"cannot {refused.what}: the broker says {refused.error.name}") from None
        except Unavailable as error:
            raise NoBrokerAvailable(str(error)) from None
        except ClientError as error:
            raise PipelineFailed(str(error)) from None

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

    def replica_counts(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """The number of replicas of each partition of these topics."""
        answer = self.with_retries(lambda: self._metadata(topics))
        return {
            TopicPartition(topic.name, one.partition): len(one.replicas)
            for topic in answer.topics
            for one in topic.partitions
        }

    def names(self) -> list[str]:
        """The names of all topics except internal ones. Nothing is retried: see `call_once`."""
        return sorted(one.name for one in self.call_once(_metadata_request(None)).topics if not one.is_internal)

    def call_once(self, request: object) -> Any:
        """Send a request to the bootstrap addresses in turn, each once, until one answers.

        `NoBrokerAvailable`, with the reason for each address, when none does: a user who waits for the result should
        learn this at once."""
        reasons = []
        for address in self._bootstrap:
            try:
                return self._connection(address).call(request)
            except NoBrokerAvailable as silent:
                self.close()
                reasons.append(str(silent))
        raise NoBrokerAvailable("; ".join(reasons))

    def leader(self, partition: TopicPartition) -> Connection:
        """A connection to the leader of a partition."""
        return self._connection(self._once(self.core.leader(partition)))

    def coordinator(self, key: str, key_type: int) -> Connection:
        """A connection to the coordinator of a group (0) or a transactional id (1)."""
        return self._connection(self._once(self.core.coordinator(key_type, key)))

    def _once(self, work: Coroutine[Any, Any, T]) -> T:
        """One attempt of the client's: the caller retries."""

        async def attempt() -> T:
            try:
                return await work
            except Refused as refused:
                if refused.retriable and refused.error not in UNKNOWN:
                    raise client.Retry(str(refused)) from None
                raise

        try:
            return self.run(attempt())
        except client.Retry as retry:
            raise RetriableError(str(retry)) from None

    def with_retries(self, ask: Callable[[], T]) -> T:
        """Call `ask` until it succeeds, for at most `retry_timeout_s`, with new metadata after each retriable error."""
        deadline = time.monotonic() + self.retry_timeout_s
        while True:
            try:
                return ask()
            except (RetriableError, NoBrokerAvailable) as why:
                self.close()
                self.core.map.forget_all()
                if time.monotonic() > deadline:
                    raise NoBrokerAvailable(f"{why}; given up after {self.retry_timeout_s:g} s") from None
                time.sleep(RETRY_PAUSE_S)

    def _partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        found = []
        for topic in self._metadata(topics).topics:
            if topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise _no_such_topic(topic.name)
            check(topic.error_code, f"{FIND_TOPIC}{topic.name}")
            found += [TopicPartition(topic.name, one.partition) for one in topic.partitions]
        return sorted(found)

    def _metadata(self, topics: Sequence[str] | None) -> Any:
        return self._once(self.core.refresh(topics))

    def _any_broker(self) -> Connection:
        reasons = []
        for address in self.core.candidates():
            try:
                return self._connection(address)
            except NoBrokerAvailable as silent:
                reasons.append(str(silent))
        raise NoBrokerAvailable("; ".join(reasons))

    def _connection(self, address: Address) -> Connection:
        link = run_blocking(self.core.link(address))
        assert isinstance(link, _Link)
        return link.connection

    def _connect(self, address: Address) -> Connection:
        return Connection(address.host, address.port, self._timeout_s, self._tls, self._sasl)


class _Link:
    """A connection as the client's routing uses it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.address = connection.address

    @property
    def is_open(self) -> bool:
        return self.connection.is_open

    def version(self, api_key: int) -> int:
        return self.connection.version(api_key)

    async def call(self, request: object) -> Any:
        return self.connection.call(request)

    def close(self) -> None:
        self.connection.close()


class _Driver(BlockingDriver):
    """Opens the pipeline's connections, whose errors say which options to look at."""

    def __init__(self, connect: Callable[[Address], Connection]) -> None:
        super().__init__()
        self._connect = connect

    async def connect(self, address: Address) -> _Link:  # type: ignore[override]
        return _Link(self._connect(address))


def _no_such_topic(name: str) -> NoSuchTopic:
    return NoSuchTopic(f"there is no topic {name}; `tailrace topic list` shows the topics")


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
