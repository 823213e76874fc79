"""This broker as a coordinator: one coordinator for each partition it leads of the topic that keeps their state.

Whatever is coordinated has a name, and belongs to the partition that its name hashes to, as with Kafka; the topic is
made when the first name is looked for. Twelve partitions, and not Kafka's fifty, are enough to spread names over a
dozen brokers: a broker's writes share the fsyncs of few files, and a failover moves few logs.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from struct import unpack
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tailrace.broker.background import BackgroundTasks
from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.coordination.partition_coordinator import PartitionCoordinator
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.timers import sleep_then_read
from tailrace.cluster.image import Topic
from tailrace.model.faults import CoordinatorUnavailable, Fault, NotCoordinator
from tailrace.model.frozen import frozen
from tailrace.model.ids import NOBODY, BrokerId, Id, TopicPartition
from tailrace.model.limits import COORDINATOR_LOG_CUT_MIN_RECORDS
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.wire.messages.peers.make_internal_topic import MakeInternalTopic
from tailrace.wire.messages.peers.move_start import MoveStart

LOOK_FOR_LONG_LOGS_S: Final = 300.0

S = TypeVar("S", bound=PartitionCoordinator[Any, Any])


class StateTopic(NamedTuple):
    """What is coordinated, and where it is kept."""

    kind: str  # "group": what messages call a name
    topic: str
    partitions: int  # of the topic, when it is made
    replication_factor: int


@frozen
class CoordinatorParts:
    """What coordinators need of their broker."""

    hosted: HostedPartitions
    leaders: Leaders
    progress: MetadataProgress
    controller: ControllerCalls
    ports: Ports
    settings: Settings
    background: BackgroundTasks


class Coordinator(Generic[S]):
    def __init__(self, parts: CoordinatorParts, kept: StateTopic, take: Callable[[Partition], S]) -> None:
        self._parts = parts
        self._kept = kept
        self._take = take
        self._coordinators: dict[TopicPartition, S] = {}  # of partitions that this broker has led

    # Who coordinates what

    async def find(self, name: str) -> BrokerId:
        """The coordinator of a name."""
        topic = await self.kept_in()
        leader, _ = self._parts.leaders.led_by(topic, partition_of(name, len(topic.partitions)))
        if leader == NOBODY:
            kept = self._kept
            raise CoordinatorUnavailable(f"nobody leads the partition of {kept.topic} that keeps {kept.kind} {name}")
        return leader

    async def kept_in(self) -> Topic:
        """The topic, made where nobody has looked for a name before."""
        return self.topic or await self._make_topic()

    @property
    def topic(self) -> Topic | None:
        return self._parts.hosted.image.topics.get(self._kept.topic)

    async def _make_topic(self) -> Topic:
        kept = self._kept
        wanted = MakeInternalTopic(
            name=kept.topic, partitions=kept.partitions, replication_factor=kept.replication_factor
        )
        try:
            made = await self._parts.controller.ask(wanted)
        except Fault as fault:
            raise CoordinatorUnavailable(f"{kept.topic} could not be made: {fault}") from fault
        await self._parts.progress.until_led([Id(made.topic_id)])
        topic = self.topic
        if topic is None:
            raise CoordinatorUnavailable(f"{kept.topic} is being made")
        return topic

    def local(self, name: str) -> S:
        """Where something is coordinated, if that is here."""
        topic = self.topic
        if topic is not None:
            key = TopicPartition(topic.id, partition_of(name, len(topic.partitions)))
            if key in self._coordinators and self._coordinators[key].is_taken:
                return self._coordinators[key]
        raise NotCoordinator(f"this broker does not coordinate {self._kept.kind} {name}")

    @property
    def local_coordinators(self) -> Sequence[S]:
        return [coordinator for coordinator in self._coordinators.values() if coordinator.is_taken]

    # Keeping logs short

    async def keep_short(self) -> None:
        """Look for logs that have become long, for ever."""
        while True:
            await sleep_then_read(LOOK_FOR_LONG_LOGS_S)
            for coordinator in self.local_coordinators:
                await self.cut(coordinator)

    async def cut(self, coordinator: S, at_least: int = COORDINATOR_LOG_CUT_MIN_RECORDS) -> None:
        """Let a log that has become long begin where all that counts was said once more."""
        begin = await coordinator.restate(at_least)
        if begin is not None:
            key = coordinator.key
            with suppress(Fault):  # there is another time
                await self._parts.controller.ask(MoveStart(topic_id=key.topic_id, partition=key.partition, start=begin))

    def background_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        """What runs as long as the broker does."""
        return [self.keep_short()]

    # What happens to the partitions

    def committed(self, records: Sequence[object]) -> None:
        """Metadata records were committed, and are in the image."""

    def leader_changed(self, member: QuorumMember) -> None:
        topic = self.topic
        if topic is None or member.key.topic_id != topic.id:
            if member.key in self._coordinators:
                self._coordinators.pop(member.key).leader_changed()
            return
        if member.key not in self._coordinators and member.leads:
            assert isinstance(member, Partition)
            self._coordinators[member.key] = self._take(member)
        if member.key in self._coordinators:
            self._coordinators[member.key].leader_changed()


def partition_of(name: str, partitions: int) -> int:
    """Java's hash of the name, made positive as Kafka does it."""
    value = 0
    data = name.encode("utf-16-be", "surrogatepass")
    for unit in unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return (0 if value == 0x80000000 else value if value < 0x80000000 else 0x100000000 - value) % partitions
