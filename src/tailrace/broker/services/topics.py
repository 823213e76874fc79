"""Topics: find, create and delete them, add partitions, and describe their partitions.

Topics are created by the controller. For topics that are created on demand, any broker sends the request to it. A call
that creates topics or partitions returns when this broker's metadata has them and they have leaders, or times out.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from tailrace.broker.control.cluster_changes import ClusterChanges
from tailrace.broker.control.topic_creation import TopicCreation
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders, PartitionState
from tailrace.broker.metadata.progress import LED_WITHIN_S, MetadataProgress
from tailrace.cluster.controller import Controller, MorePartitions, NewTopic, TopicCreated
from tailrace.cluster.image import Topic
from tailrace.model.caller import Caller
from tailrace.model.faults import (
    Fault,
    FencedLeaderEpoch,
    InvalidRequest,
    NotLeader,
    PolicyViolation,
    TopicDeletionDisabled,
    TopicExists,
    UnknownTopic,
    UnknownTopicId,
)
from tailrace.model.ids import NO_BROKER, NO_EPOCH, BrokerId, Epoch, Id, show_id
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.model.proposal import Proposal
from tailrace.model.settings import Settings
from tailrace.model.topics import TopicSettings, check_topic_name

__all__ = ["LeaderHint", "PartitionState", "Topics"]

logger: Final = logging.getLogger(__name__)


LeaderHint = tuple[BrokerId, Epoch]
NO_HINT: Final[LeaderHint] = (NO_BROKER, NO_EPOCH)


class Topics:
    def __init__(
        self,
        hosted: HostedPartitions,
        leaders: Leaders,
        progress: MetadataProgress,
        changes: ClusterChanges,
        creation: TopicCreation,
        settings: Settings,
        me: BrokerId,
    ) -> None:
        self._hosted = hosted
        self._leaders = leaders
        self._progress = progress
        self._changes = changes
        self._creation = creation
        self._settings = settings
        self._me = me

    # Finding

    def all(self, who: Caller) -> Mapping[str, Topic]:
        """All topics, by name."""
        return self._hosted.image.topics

    def find(self, who: Caller, topic: str | Id) -> Topic | None:
        image = self._hosted.image
        return image.topics.get(topic) if isinstance(topic, str) else image.topics_by_id.get(topic)

    def require(self, who: Caller, topic: str | Id) -> Topic:
        """The topic; raises `UnknownTopic`, `UnknownTopicId`, or `InvalidTopicName` if no topic can have that name."""
        found = self.find(who, topic)
        if found is not None:
            return found
        if isinstance(topic, str):
            check_topic_name(topic)
            raise UnknownTopic(f"there is no topic {topic}")
        raise UnknownTopicId(f"there is no topic with id {show_id(topic)}")

    def watch(self, changed: Callable[[Id], None]) -> None:
        """Call `changed` whenever a topic is created, deleted, gets more partitions, or one of its leaders changes."""
        self._hosted.watch_topics(changed)

    def partition_states(self, topic: Topic, first: int = 0) -> Sequence[PartitionState]:
        """Leader, replicas and in-sync replicas of a topic's partitions from `first` on."""
        return self._leaders.of(topic, first)

    def leader_hint(self, topic: str | Id, partition: int, fault: Fault) -> LeaderHint:
        """The leader and epoch that a refusal names (KIP-951): the newest that this broker knows, from its own replica
        or from the metadata. `NO_HINT` if the refusal does not concern leadership, or the client would be sent back
        to this broker."""
        if not isinstance(fault, NotLeader | FencedLeaderEpoch):
            return NO_HINT
        image = self._hosted.image
        found = image.topics.get(topic) if isinstance(topic, str) else image.topics_by_id.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return NO_HINT
        leader, epoch = self._leaders.hint(found, partition)
        if leader == self._me and isinstance(fault, NotLeader):
            return NO_HINT  # this broker is about to hand leadership over, or was elected a moment ago
        return leader, epoch

    # Creating

    @property
    def default_partitions(self) -> int:
        return self._settings.num_partitions

    @property
    def default_replication_factor(self) -> int:
        """-1: the controller decides."""
        return self._settings.default_replication_factor

    @property
    def may_be_created_on_demand(self) -> bool:
        return self._settings.auto_create_topics_enable

    async def create(
        self,
        who: Caller,
        wanted: Sequence[NewTopic | Fault],
        *,
        validate_only: bool = False,
        within_s: float = LED_WITHIN_S,
    ) -> list[TopicCreated | Fault]:
        """Create topics, on the controller, each with its own result; a fault among `wanted` is returned as it is. When
        this returns, the partitions of the new topics have leaders, or the time is up."""
        answers = await self._creation.create(wanted, validate_only=validate_only, within_s=within_s)
        if not validate_only:
            self._warn_of([one for one in answers if isinstance(one, TopicCreated)])
        return answers

    async def create_missing(self, who: Caller, names: Sequence[str]) -> dict[str, Fault]:
        """Create topics with the default settings, through the controller; returns a fault for each topic that could
        not be created. A topic that exists already is no fault."""
        if not names:
            return {}
        partitions, replicas = self.default_partitions, self.default_replication_factor
        wanted = [NewTopic(name=name, partitions=partitions, replication_factor=replicas) for name in names]
        if not self._changes.are_made_here:
            return await self._creation.request(wanted)
        answers = await self.create(who, wanted)
        refused = {name: answer for name, answer in zip(names, answers, strict=True) if isinstance(answer, Fault)}
        return {name: fault for name, fault in refused.items() if not isinstance(fault, TopicExists)}

    def _warn_of(self, created: Sequence[TopicCreated]) -> None:
        """Log a warning for settings that are allowed, as in Kafka, but probably a mistake."""
        broker = self._hosted.effective if created else self._settings
        for one in created:
            if one.warning is not None:
                logger.warning("%s", one.warning)
            wanted = TopicSettings.of(one.settings, broker).min_insync_replicas
            if wanted > one.replication_factor:
                logger.warning(
                    "topic %s has min.insync.replicas=%d but replication factor %d: acks=all will always be refused",
                    one.name,
                    wanted,
                    one.replication_factor,
                )

    # Adding partitions and deleting

    async def grow(
        self, who: Caller, wanted: Sequence[MorePartitions], *, validate_only: bool, within_s: float
    ) -> list[Topic | Fault]:
        """Add partitions to topics, each with its own result. When this returns, they are led, or the time is up."""
        budget = PartitionBudget()
        changes = [partial(_grow, one, budget) for one in wanted]
        answers = await self._changes.each(changes, validate_only=validate_only)
        await self._progress.until_led([one.id for one in answers if isinstance(one, Topic)], within_s)
        return answers

    async def delete(self, who: Caller, wanted: Sequence[str | Id | Fault]) -> list[Topic | Fault]:
        """Delete topics by name or by id, each with its own result; a fault among `wanted` is returned as it is."""
        if not self._settings.delete_topic_enable:
            fault = TopicDeletionDisabled("Topic deletion is disabled: delete.topic.enable is false.")
            return [fault for _ in wanted]
        deleted: dict[Id, None] = {}
        return await self._changes.each([partial(_delete, one, deleted) for one in wanted])


class PartitionBudget:
    """How many partitions a request may still create."""

    def __init__(self) -> None:
        self._left = PARTITIONS_PER_REQUEST_MAX

    def take(self, count: int) -> None:
        if count > self._left:
            raise PolicyViolation(f"one request may create at most {PARTITIONS_PER_REQUEST_MAX} partitions")
        self._left -= count


def _grow(wanted: MorePartitions, budget: PartitionBudget, controller: Controller) -> Proposal[Topic]:
    proposal = controller.add_partitions(wanted)
    budget.take(len(proposal.records))
    return proposal


def _delete(wanted: str | Id | Fault, deleted: dict[Id, None], controller: Controller) -> Proposal[Topic]:
    """`deleted` holds the topics that this request deletes already: it may name the same one by name and by id."""
    if isinstance(wanted, Fault):
        raise wanted
    proposal = controller.delete_topic(wanted)
    if proposal.answer.id in deleted:
        raise InvalidRequest("Duplicate topic name or id.")
    deleted[proposal.answer.id] = None
    return proposal
