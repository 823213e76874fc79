"""This broker as the coordinator of consumer groups: a machine for each partition of `__consumer_offsets` led here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tailrace.broker.group_seat import GroupSeat
from tailrace.broker.group_topics import ClusterTopics
from tailrace.broker.partition import Partition
from tailrace.broker.pauses import pause
from tailrace.broker.seats import Kept, Seats
from tailrace.cluster.records import TopicRemoved
from tailrace.groups.turn import Rules
from tailrace.model.ids import Id
from tailrace.model.settings import Settings
from tailrace.model.topics import offsets_topic

if TYPE_CHECKING:
    from tailrace.broker.node import Node


class Grouping(Seats[GroupSeat]):
    def __init__(self, node: "Node") -> None:
        settings = node.settings
        partitions, replicas = settings.offsets_topic_num_partitions, settings.offsets_topic_replication_factor
        super().__init__(node, Kept("group", offsets_topic, partitions, replicas), self._take_seat)
        self._rules = rules_of(settings)
        self._topics = ClusterTopics(lambda: node.replicas.image)

    def _take_seat(self, partition: Partition) -> GroupSeat:
        return GroupSeat(partition, self._rules, self._topics, self._node.ports, self._node.spawn)

    def committed(self, records: Sequence[object]) -> None:
        """Offsets of a topic that was deleted are none of a topic that is made later under its name."""
        self._topics.committed(records)
        removed = self._node.replicas.image.removed
        gone = [removed[Id(record.topic_id)] for record in records if isinstance(record, TopicRemoved)]
        if gone:
            for seat in self.seats:
                seat.topics_gone(gone)
                self._node.spawn(seat.expire())

    async def forget_old(self) -> None:
        """Look for offsets that need not be kept, for ever."""
        while True:
            await pause(min(self._node.settings.offsets_retention_check_interval_ms / 1000, 86_400.0))
            for seat in self.seats:
                await seat.expire()


def rules_of(settings: Settings) -> Rules:
    return Rules(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        max_size=settings.group_max_size,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        consumer_session_timeout_ms=settings.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        consumer_max_size=settings.group_consumer_max_size,
        assignors=tuple(settings.group_consumer_assignors.split(",")),
        may_upgrade=settings.group_consumer_migration_policy in ("bidirectional", "upgrade"),
        may_downgrade=settings.group_consumer_migration_policy in ("bidirectional", "downgrade"),
    )
