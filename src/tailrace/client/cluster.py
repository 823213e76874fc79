"""Requests to the right broker: any, the leader of a partition, the coordinator of a group; with retries and deadlines.

Leaders move, brokers restart, connections break. A request that fails for such a reason is sent again after a pause
that grows, with fresh metadata, until its deadline. An error that is not retriable is raised at once. A request without
a response may have been executed: the caller of `retry` must only pass attempts that may be repeated.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, TypeVar

from tailrace.client.cluster_map import UNKNOWN, ClusterMap, CoordinatorKey
from tailrace.client.driver import Driver, Link
from tailrace.client.faults import NoSuchPartition, Refused, Unavailable, check
from tailrace.model.addresses import Address
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse, TopicWanted

T = TypeVar("T")

ATTEMPT_MIN_S: Final = 0.001
GROUP: Final = 0
TRANSACTION: Final = 1

# By API key, the newest version that is used. Later ones name topics by id, take several groups or keys per request, or
# let brokers add partitions to a transaction.
VERSION_CAPS: Final = {
    0: 11,  # Produce
    1: 12,  # Fetch
    8: 9,  # OffsetCommit
    9: 7,  # OffsetFetch
    10: 3,  # FindCoordinator
    24: 3,  # AddPartitionsToTxn
    25: 4,  # AddOffsetsToTxn
    26: 4,  # EndTxn
    28: 4,  # TxnOffsetCommit
}


@frozen
class Limits:
    """How long a client waits."""

    request_s: float = 30.0  # for a response, after which the connection is given up
    retry_s: float = 60.0  # for a whole request, with its retries
    unknown_s: float = 3.0  # for a topic that no broker knows: it may just have been created
    pause_min_s: float = 0.02  # before the first retry
    pause_max_s: float = 1.0
    metadata_max_age_s: float = 300.0  # after which a topic in use is looked up again: it may have more partitions


class Retry(Exception):
    """Raised by an attempt that should be made again."""


class Unanswered(Retry):
    """A request was sent and got no response: the broker may have executed it."""


class Cluster:
    def __init__(self, driver: Driver, bootstrap: Sequence[Address], limits: Limits = Limits()) -> None:  # noqa: B008
        self.driver = driver
        self.limits = limits
        self.map = ClusterMap()
        self._bootstrap = bootstrap
        self._links: dict[Address, Link] = {}
        self._is_closed = False

    def with_own_connections(self, limits: Limits) -> "Cluster":
        """The same cluster over other connections, for requests that a broker may hold for long: it answers each
        connection in order, so other requests would have to wait behind them. The caller closes it."""
        other = Cluster(self.driver, self._bootstrap, limits)
        other.map = self.map
        return other

    def close(self) -> None:
        """Close all connections for good: work that is still under way opens no other."""
        self._is_closed = True
        self.disconnect()

    def disconnect(self) -> None:
        """Close all connections; the next request opens others."""
        links, self._links = self._links, {}
        for link in links.values():
            link.close()

    # Connections

    async def link(self, address: Address) -> Link:
        """A connection to this broker, opened if there is none."""
        link = self._links.get(address)
        if link is not None and link.is_open:
            return link
        return await self.driver.share(("connect", self, address), lambda: self._connect(address))

    async def _connect(self, address: Address) -> Link:
        if self._is_closed:
            raise Retry("the client is closed")
        link = await self.driver.within(self.limits.request_s, self.driver.connect(address))
        if self._is_closed:
            link.close()
            raise Retry("the client is closed")
        self._links[address] = link
        return link

    async def call(self, address: Address, request: object, within_s: float | None = None) -> Any:
        """Send a request to one broker. `Retry` when there is no connection, `Unanswered` when it does not answer
        within `request_s`, or the time given: the broker is forgotten until metadata or the bootstrap addresses name
        it again."""
        within_s = self.limits.request_s if within_s is None else within_s
        failure = Retry
        try:
            link = await self.link(address)
            failure = Unanswered
            return await self.driver.within(within_s, link.call(request))
        except (OSError, TimeoutError) as error:
            self.drop(address)
            raise failure(f"{address} does not answer: {_reason(error)}") from None

    def drop(self, address: Address) -> None:
        """Close the connection to a broker that does not answer."""
        link = self._links.pop(address, None)
        if link is not None:
            link.close()
        self.map.forget_address(address)

    async def call_any(self, request: object, on_unanswered: Callable[[], None] = lambda: None) -> Any:
        """Send a request to any broker: one that is connected, else those of the metadata, else the bootstrap ones.

        `on_unanswered` is called for each broker that got the request and did not answer: it may have executed it.
        """
        reasons = []
        for address in self.candidates():
            try:
                return await self.call(address, request)
            except Retry as retry:
                if isinstance(retry, Unanswered):
                    on_unanswered()
                reasons.append(str(retry))
        raise Retry("; ".join(reasons) or "there is no address to connect to")

    def candidates(self) -> Iterable[Address]:
        """The addresses of brokers to ask, those that are connected first."""
        connected = [address for address, link in self._links.items() if link.is_open]
        return dict.fromkeys([*connected, *self.map.brokers.values(), *self._bootstrap])

    # Metadata

    async def refresh(self, topics: Iterable[str] | None = (), *, create: bool = False) -> MetadataResponse:
        """Ask for metadata of these topics (None: all) and take it into the map."""
        names = None if topics is None else tuple(sorted(dict.fromkeys(topics)))

        async def ask() -> MetadataResponse:
            wanted = None if names is None else tuple(TopicWanted(name=name) for name in names)
            response = await self.call_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=create))
            assert isinstance(response, MetadataResponse)
            self.map.update(response)
            self.map.note_update(response, self.driver.now())
            return response

        return await self.driver.share(("metadata", self, names, create), ask)

    def is_stale(self, topic: str) -> bool:
        """Whether the metadata of a topic is so old that it should be asked for again."""
        return self.driver.now() - self.map.updated_at.get(topic, -inf) >= self.limits.metadata_max_age_s

    async def leader(self, partition: PartitionName, *, create: bool = False) -> Address:
        """The address of a partition's leader; `Retry` while there is none, `Refused` if the topic is not there."""
        address = self.map.leader(partition)
        if address is None:
            response = await self.refresh([partition.topic], create=create)
            for topic in response.topics:
                check(topic.error_code, f"find topic {topic.name}")
            address = self.map.leader(partition)
        if address is None:
            if self.map.has_topic(partition.topic) and partition not in self.map.partitions(partition.topic):
                raise NoSuchPartition(partition, self.map.partition_counts[partition.topic])
            raise Retry(f"{partition.topic}-{partition.partition} has no leader")
        return address

    async def by_leader(self, partitions: Iterable[PartitionName]) -> dict[Address, list[PartitionName]]:
        missing = dict.fromkeys(one.topic for one in partitions if self.map.leader(one) is None)
        if missing:
            await self.refresh(missing)
        found: dict[Address, list[PartitionName]] = {}
        for one in partitions:
            found.setdefault(await self.leader(one), []).append(one)
        return found

    async def coordinator(self, kind: int, name: str) -> Address:
        """The address of the coordinator of a group (`GROUP`) or of a transactional id (`TRANSACTION`)."""
        key = CoordinatorKey(kind, name)
        known = self.map.coordinator(key)
        if known is not None:
            return known
        found = await self.call_any(FindCoordinatorRequest(key=name, key_type=kind))
        check(found.error_code, f"find the coordinator of {name}", found.error_message)
        address = Address(found.host, found.port)
        self.map.learn_coordinator(key, address)
        return address

    # Retries

    async def retry(self, what: str, attempt: Callable[[], Awaitable[T]], within_s: float | None = None) -> T:
        """Make attempts until one succeeds. `what` says what for, as in "cannot …"; Unavailable at the deadline."""
        limits, now = self.limits, self.driver.now
        within_s = limits.retry_s if within_s is None else within_s
        began = now()
        deadline = began + within_s
        pause_s = limits.pause_min_s
        why = "no answer"
        while True:
            try:
                return await self.driver.within(max(deadline - now(), ATTEMPT_MIN_S), _awaited(attempt))
            except TimeoutError:
                raise Unavailable(f"cannot {what} within {within_s:g} s: {why}") from None
            except Retry as retry:
                why = str(retry)
            except Refused as refused:
                unknown = refused.error in UNKNOWN and now() - began >= limits.unknown_s
                if unknown or not refused.retriable:
                    raise
                why = str(refused)
            left_s = deadline - now()
            if left_s <= 0:
                raise Unavailable(f"cannot {what} within {within_s:g} s: {why}")
            await self.driver.sleep(min(self.driver.jitter(0.5, 1.0) * pause_s, left_s))
            pause_s = min(2 * pause_s, limits.pause_max_s)

    async def call_coordinator(self, kind: int, name: str, request: object, within_s: float | None = None) -> Any:
        """One attempt: send a request to a coordinator. The caller passes errors to `check_coordinated`."""
        return await self.call(await self.coordinator(kind, name), request, within_s)

    def check_coordinated(self, kind: int, name: str, code: int, what: str, message: str | None = None) -> None:
        """Raise `Refused` unless the code is NONE, and forget a coordinator that is none."""
        if code in (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE):
            self.map.forget_coordinator(CoordinatorKey(kind, name))
        check(code, what, message)


async def _awaited(attempt: Callable[[], Awaitable[T]]) -> T:
    return await attempt()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or "no answer in time"
