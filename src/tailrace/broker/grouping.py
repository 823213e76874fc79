"""This broker as the coordinator of consumer groups: one machine for each partition of `__consumer_offsets` it leads.

A group belongs to the partition that its name hashes to, as with Kafka; the topic is made when the first group is
looked for. Twelve partitions, and not Kafka's fifty, are enough to spread groups over a dozen brokers: a broker's
commits share the fsyncs of few files, and a failover moves few logs.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tailrace.broker.group_seat import GroupSeat
from tailrace.broker.member import Member
from tailrace.broker.partition import Partition
from tailrace.broker.pauses import pause
from tailrace.cluster.image import Topic
from tailrace.cluster.records import TopicRemoved
from tailrace.groups.turn import Rules
from tailrace.model.faults import CoordinatorUnavailable, Fault, NotCoordinator
from tailrace.model.ids import BrokerId, Id, TopicPartition, nobody
from tailrace.model.settings import Settings
from tailrace.model.topics import offsets_topic
from tailrace.wire.messages.peers.make_internal_topic import MakeInternalTopic

if TYPE_CHECKING:
    from tailrace.broker.node import Node

events: Final = logging.getLogger(__name__)


class Grouping:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._rules = rules_of(node.settings)
        self._seats: dict[TopicPartition, GroupSeat] = {}  # of partitions that this broker has led

    # Who coordinates what

    async def find(self, group_id: str) -> BrokerId:
        """The coordinator of a group."""
        topic = self._topic or await self._make_topic()
        leader = self._node.leaders.one(topic, partition_of(group_id, len(topic.partitions))).leader
        if leader == nobody:
            raise CoordinatorUnavailable(f"nobody leads the partition of {offsets_topic} that keeps group {group_id}")
        return leader

    @property
    def _topic(self) -> Topic | None:
        return self._node.replicas.image.topics.get(offsets_topic)

    async def _make_topic(self) -> Topic:
        settings = self._node.settings
        wanted = MakeInternalTopic(
            name=offsets_topic,
            partitions=settings.offsets_topic_num_partitions,
            replication_factor=settings.offsets_topic_replication_factor,
        )
        try:
            made = await self._node.calls.controller(wanted)
        except Fault as fault:
            raise CoordinatorUnavailable(f"{offsets_topic} could not be made: {fault}") from fault
        await self._node.until_led([Id(made.topic_id)])
        topic = self._topic
        if topic is None:
            raise CoordinatorUnavailable(f"{offsets_topic} is being made")
        return topic

    def seat(self, group_id: str) -> GroupSeat:
        """Where a group is coordinated, if that is here."""
        topic = self._topic
        if topic is not None:
            key = TopicPartition(topic.id, partition_of(group_id, len(topic.partitions)))
            if key in self._seats and self._seats[key].is_taken:
                return self._seats[key]
        raise NotCoordinator(f"this broker does not coordinate group {group_id}")

    @property
    def seats(self) -> Sequence[GroupSeat]:
        return [seat for seat in self._seats.values() if seat.is_taken]

    # What happens to the partitions

    def leader_changed(self, member: Member) -> None:
        topic = self._topic
        if topic is None or member.key.topic_id != topic.id:
            if member.key in self._seats:
                self._seats.pop(member.key).leader_changed()
            return
        if member.key not in self._seats and member.leads:
            assert isinstance(member, Partition)
            self._seats[member.key] = GroupSeat(member, self._rules, self._node.ports, self._node.spawn)
        if member.key in self._seats:
            self._seats[member.key].leader_changed()

    def committed(self, records: Sequence[object]) -> None:
        """Offsets of a topic that was deleted are none of a topic that is made later under its name."""
        removed = self._node.replicas.image.removed
        gone = {removed[Id(record.topic_id)]: None for record in records if isinstance(record, TopicRemoved)}
        if gone:
            for seat in self.seats:
                self._node.spawn(seat.expire(gone.__contains__))

    def _is_gone(self) -> Callable[[str], bool]:
        """What nobody heard of when it was deleted: there was no coordinator just then."""
        image = self._node.replicas.image
        gone = {name: None for name in image.removed.values() if name not in image.topics}
        return gone.__contains__

    async def forget_old(self) -> None:
        """Look for offsets that need not be kept, for ever."""
        while True:
            await pause(min(self._node.settings.offsets_retention_check_interval_ms / 1000, 86_400.0))
            for seat in self.seats:
                await seat.expire(self._is_gone())


def rules_of(settings: Settings) -> Rules:
    return Rules(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        max_size=settings.group_max_size,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
    )


def partition_of(group_id: str, partitions: int) -> int:
    """Java's hash of the name, made positive as Kafka does it."""
    value = 0
    data = group_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (31 * value + int.from_bytes(data[at : at + 2], "big")) & 0xFFFFFFFF
    return (0 if value == 0x80000000 else value if value < 0x80000000 else 0x100000000 - value) % partitions
