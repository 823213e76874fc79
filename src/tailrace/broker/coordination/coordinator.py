"""A coordinator of this broker: one `PartitionCoordinator` for each partition that it leads of the state topic.

What is coordinated (a group, a transactional id) has a name, and belongs to the partition that its name hashes to, as
in Kafka. The state topic is created when the first name is looked up. It has twelve partitions, not Kafka's fifty:
enough to spread names over a dozen brokers, while a broker's writes share the fsyncs of few files, and a failover moves
few logs.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import lru_cache
from struct import unpack
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tailrace.broker.background import BackgroundTasks
from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.control.topic_creation import TopicCreation
from tailrace.broker.coordination.partition_coordinator import PartitionCoordinator
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.timers import sleep_then_read
from tailrace.cluster.image import Topic
from tailrace.model.faults import CoordinatorUnavailable, Fault, NotCoordinator
from tailrace.model.frozen import frozen
from tailrace.model.ids import NO_BROKER, BrokerId, TopicPartition
from tailrace.model.limits import COORDINATOR_LOG_CUT_MIN_RECORDS
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.wire.messages.peers.move_start import MoveStart

LOG_LENGTH_CHECK_S: Final = 300.0
HASHES_KEPT_MAX: Final = 10_000  # of names
HASHED_ONCE_MAX_CHARS: Final = 256

S = TypeVar("S", bound=PartitionCoordinator[Any, Any])


class StateTopic(NamedTuple):
    """The internal topic that keeps a coordinator's state."""

    kind: str  # of the names, for messages: "group"
    topic: str
    partitions: int  # when the topic is created
    replication_factor: int


@frozen
class CoordinatorParts:
    """The parts of the broker that coordinators use."""

    hosted: HostedPartitions
    leaders: Leaders
    controller: ControllerCalls
    topics: TopicCreation
    ports: Ports
    settings: Settings
    background: BackgroundTasks


class Coordinator(Generic[S]):
    def __init__(self, parts: CoordinatorParts, state_topic: StateTopic, new: Callable[[Partition], S]) -> None:
        self._parts = parts
        self._state_topic = state_topic
        self._new = new
        self._coordinators: dict[TopicPartition, S] = {}  # of partitions that this broker leads or has led

    # Finding coordinators

    async def find(self, name: str) -> BrokerId:
        """The broker that coordinates `name`."""
        topic = await self.state_topic()
        leader, _ = self._parts.leaders.led_by(topic, partition_of(name, len(topic.partitions)))
        if leader == NO_BROKER:
            state = self._state_topic
            raise CoordinatorUnavailable(f"the partition of {state.topic} for {state.kind} {name} has no leader")
        return leader

    async def state_topic(self) -> Topic:
        """The state topic, created if it does not exist."""
        return self.topic or await self._create_topic()

    @property
    def topic(self) -> Topic | None:
        return self._parts.hosted.image.topics.get(self._state_topic.topic)

    async def _create_topic(self) -> Topic:
        state = self._state_topic
        try:
            await self._parts.topics.request_internal(state.topic, state.partitions, state.replication_factor)
        except Fault as fault:
            raise CoordinatorUnavailable(f"{state.topic} could not be created: {fault}") from fault
        topic = self.topic
        if topic is None:
            raise CoordinatorUnavailable(f"{state.topic} is being created")
        return topic

    def local(self, name: str) -> S:
        """The coordinator of `name` on this broker; `NotCoordinator` if it is on another."""
        topic = self.topic
        if topic is not None:
            key = TopicPartition(topic.id, partition_of(name, len(topic.partitions)))
            if key in self._coordinators and self._coordinators[key].leads:
                return self._coordinators[key]
        raise NotCoordinator(f"this broker is not the coordinator of {self._state_topic.kind} {name}")

    @property
    def local_coordinators(self) -> Sequence[S]:
        return [coordinator for coordinator in self._coordinators.values() if coordinator.leads]

    # Keeping logs short

    async def keep_logs_short(self) -> None:
        """Shorten logs that have become long, until cancelled."""
        while True:
            await sleep_then_read(LOG_LENGTH_CHECK_S)
            for coordinator in self.local_coordinators:
                await self.shorten(coordinator)

    async def shorten(self, coordinator: S, at_least: int = COORDINATOR_LOG_CUT_MIN_RECORDS) -> None:
        """Rewrite the live state at the end of a log that has become long, and move the log start to there."""
        begin = await coordinator.rewrite(at_least)
        if begin is not None:
            key = coordinator.key
            with suppress(Fault):  # the next check tries again
                await self._parts.controller.ask(MoveStart(topic_id=key.topic_id, partition=key.partition, start=begin))

    def background_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Coroutines that run as long as the broker does."""
        return [self.keep_logs_short()]

    # Metadata and leadership changes

    def committed(self, records: Sequence[object]) -> None:
        """Metadata records were committed, and are in the image already."""

    def leader_changed(self, partition: Partition) -> None:
        topic, key = self.topic, partition.key
        if topic is None or key.topic_id != topic.id:
            if key in self._coordinators:
                self._coordinators.pop(key).leader_changed()
            return
        if key not in self._coordinators and partition.leads:
            self._coordinators[key] = self._new(partition)
        if key in self._coordinators:
            self._coordinators[key].leader_changed()


def partition_of(name: str, partitions: int) -> int:
    """Java's `hashCode` of the name, made positive as Kafka does."""
    return (_hash_once(name) if len(name) <= HASHED_ONCE_MAX_CHARS else _hash(name)) % partitions


def _hash(name: str) -> int:
    value = 0
    data = name.encode("utf-16-be", "surrogatepass")
    for unit in unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return 0 if value == 0x80000000 else value if value < 0x80000000 else 0x100000000 - value


_hash_once: Final = lru_cache(HASHES_KEPT_MAX)(_hash)  # a client names its group in every request
