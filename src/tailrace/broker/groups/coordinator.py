"""The group coordinator of this broker: one state machine for each partition of `__consumer_offsets` that it leads."""

from collections.abc import Coroutine, Sequence
from typing import Any

from tailrace.broker.coordination.coordinator import Coordinator, CoordinatorParts, StateTopic
from tailrace.broker.groups.partition_coordinator import GroupPartitionCoordinator
from tailrace.broker.groups.share_state_work import ShareStateCalls
from tailrace.broker.groups.topics import ClusterTopics
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.timers import sleep_then_read
from tailrace.cluster.records import TopicRemoved
from tailrace.groups.turn import Rules
from tailrace.model.ids import Id
from tailrace.model.settings import Settings
from tailrace.model.topics import OFFSETS_TOPIC


class GroupCoordinator(Coordinator[GroupPartitionCoordinator]):
    def __init__(self, parts: CoordinatorParts, share_calls: ShareStateCalls) -> None:
        settings, hosted = parts.settings, parts.hosted
        partitions, replicas = settings.offsets_topic_num_partitions, settings.offsets_topic_replication_factor
        super().__init__(parts, StateTopic("group", OFFSETS_TOPIC, partitions, replicas), self._new_coordinator)
        self._rules = rules_of(settings)
        self._topics = ClusterTopics(lambda: hosted.image)
        self._share_calls = share_calls

    def _new_coordinator(self, partition: Partition) -> GroupPartitionCoordinator:
        return GroupPartitionCoordinator(
            partition,
            self._rules,
            self._topics,
            self._parts.ports,
            self._parts.background.spawn,
            self._share_calls,
            self._parts.settings.group_share_initialize_retry_interval_ms / 1000,
        )

    def committed(self, records: Sequence[object]) -> None:
        """Expire offsets and share state of deleted topics: they must not apply to a later topic of the same name."""
        self._topics.committed(records)
        removed = self._parts.hosted.image.removed
        deleted = [removed[Id(record.topic_id)] for record in records if isinstance(record, TopicRemoved)]
        if deleted:
            for coordinator in self.local_coordinators:
                coordinator.topics_deleted(deleted)
                self._parts.background.spawn(coordinator.expire())

    def background_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        return [self.expire_offsets(), *super().background_work()]

    async def expire_offsets(self) -> None:
        """Remove expired offsets and groups periodically, until cancelled."""
        while True:
            await sleep_then_read(min(self._parts.settings.offsets_retention_check_interval_ms / 1000, 86_400.0))
            for coordinator in self.local_coordinators:
                await coordinator.expire()


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
        share_session_timeout_ms=settings.group_share_session_timeout_ms,
        share_heartbeat_interval_ms=settings.group_share_heartbeat_interval_ms,
        share_max_size=settings.group_share_max_size,
    )
