"""The share coordinator of this broker: a state machine for each partition of `__share_group_state` that it leads."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from tailrace.broker.control.peer_requests import Handler
from tailrace.broker.coordination.coordinator import Coordinator, CoordinatorParts, StateTopic, partition_of
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.queues.state_partition_coordinator import ShareStatePartitionCoordinator
from tailrace.broker.queues.state_requests import CallKind, Outcome, StateCall, from_wire, to_result
from tailrace.cluster.features import METADATA_VERSION, SHARE_GROUPS_LEVEL
from tailrace.cluster.records import TopicRemoved
from tailrace.model.faults import Fault, UnknownTopicId, UnsupportedVersion
from tailrace.model.ids import BrokerId, Id, show_id
from tailrace.model.topics import SHARE_STATE_TOPIC
from tailrace.queues.state import ShareKey
from tailrace.wire.messages.peers.call_share_coordinator import (
    CallShareCoordinator,
    CallShareCoordinatorAnswer,
    ShareStateCall,
)

NAMES_KEPT_MAX: Final = 10_000


@lru_cache(maxsize=NAMES_KEPT_MAX)
def _name(key: ShareKey) -> str:
    """Each write of a share partition asks for its name twice."""
    return str(key)


class ShareCoordinator(Coordinator[ShareStatePartitionCoordinator]):
    def __init__(self, parts: CoordinatorParts) -> None:
        settings = parts.settings
        partitions = settings.share_coordinator_state_topic_num_partitions
        replicas = settings.share_coordinator_state_topic_replication_factor
        super().__init__(
            parts, StateTopic("share partition", SHARE_STATE_TOPIC, partitions, replicas), self._new_coordinator
        )

    def _new_coordinator(self, partition: Partition) -> ShareStatePartitionCoordinator:
        return ShareStatePartitionCoordinator(
            partition,
            self._parts.ports,
            self._parts.background.spawn,
            lambda: self._parts.hosted.image.level,
            lambda: self._parts.hosted.image.removed,
        )

    def require_level(self) -> None:
        """Share groups need a level of metadata.version at which every broker knows them."""
        level = self._parts.hosted.image.level
        if level < SHARE_GROUPS_LEVEL:
            raise UnsupportedVersion(
                f"share groups need {METADATA_VERSION} {SHARE_GROUPS_LEVEL}, {level} is in force: "
                "raise it with `tailrace cluster upgrade`"
            )

    async def place(self, key: ShareKey) -> tuple[BrokerId, int]:
        """The broker that leads the partition with the state of a share partition, and the number of that partition."""
        self.require_level()
        name = _name(key)
        broker = await self.find(name)
        topic = await self.state_topic()
        return broker, partition_of(name, len(topic.partitions))

    async def call(self, call: StateCall) -> Outcome:
        """Carry a call out on this broker; `NotCoordinator` if it does not coordinate the share partition. A broker
        that does not know of a raised level yet does not know of the state topic either."""
        if call.kind is CallKind.INITIALIZE and call.key.topic_id in self._parts.hosted.image.removed:
            raise UnknownTopicId(f"topic {show_id(call.key.topic_id)} has been deleted")
        result, fault = await self.local(_name(call.key)).call(call)
        if fault is not None:
            raise fault
        return result

    # Other brokers

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {CallShareCoordinator: self._serve}

    async def _serve(self, caller: BrokerId, request: CallShareCoordinator) -> CallShareCoordinatorAnswer:
        outcomes = await asyncio.gather(*(self._outcome(one) for one in request.calls))
        return CallShareCoordinatorAnswer(results=tuple(map(to_result, outcomes)))

    async def _outcome(self, call: ShareStateCall) -> Outcome:
        try:
            return await self.call(from_wire(call))
        except Fault as fault:
            return fault

    # Metadata

    def committed(self, records: Sequence[object]) -> None:
        """Delete the state of deleted topics."""
        deleted = [Id(record.topic_id) for record in records if isinstance(record, TopicRemoved)]
        if deleted:
            for coordinator in self.local_coordinators:
                self._parts.background.spawn(self._delete_topics(coordinator, deleted))

    async def _delete_topics(self, coordinator: ShareStatePartitionCoordinator, topic_ids: Sequence[Id]) -> None:
        with suppress(Fault):  # the next leader does the same
            await coordinator.delete_topics(topic_ids)
