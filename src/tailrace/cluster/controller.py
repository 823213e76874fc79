"""The controller: what is asked of the cluster, as records proposed for its metadata log.

Each method looks at the image and returns a `Proposal`: the records to append and the answer to give once they are
committed. It changes nothing itself; the coordinator runtime appends the records and replays them.
A request for several things answers each on its own: one bad topic does not spoil the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tailrace.cluster.image import Image, Resource, Topic, plain
from tailrace.cluster.placement import place
from tailrace.cluster.records import (
    FeatureRaised,
    MetadataRecord,
    PartitionAdded,
    PartitionStartMoved,
    ProducerIdsTaken,
    SettingChanged,
    TopicAdded,
    TopicRemoved,
)
from tailrace.cluster.settings import Operation, SettingChange, changed_settings
from tailrace.model.faults import (
    Fault,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidTopicName,
    PolicyViolation,
    TopicExists,
    UnknownTopic,
    UnknownTopicId,
)
from tailrace.model.ids import BrokerId, Id, show_id
from tailrace.model.limits import partitions_per_broker_max, partitions_per_topic_max
from tailrace.model.proposal import Proposal
from tailrace.model.topics import check_topic_name, check_topic_setting, internal_topics

T = TypeVar("T")

producer_ids_per_block = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic somebody wants. Where `assignment` names replicas for each partition, the two numbers are -1."""

    name: str
    partitions: int
    replication_factor: int
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated:
    name: str
    id: Id
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MorePartitions:
    """A topic shall have `total` partitions; `assignment` may name the new ones' replicas."""

    topic: str
    total: int
    assignment: Sequence[Sequence[int]] | None = None


class Controller:
    def __init__(self, brokers: Sequence[BrokerId]) -> None:
        self.image = Image()
        self._brokers = brokers

    def replay(self, record: MetadataRecord) -> None:
        self.image.replay(record)

    def create_topic(self, wanted: NewTopic, new_id: Callable[[], Id]) -> Proposal[TopicCreated]:
        check_topic_name(wanted.name)
        if wanted.name in internal_topics:
            raise InvalidTopicName(f"{wanted.name} is one of the broker's own topics")
        if wanted.name in self.image.topics:
            raise TopicExists(f"topic {wanted.name} exists already")
        self._check_collision(wanted.name)
        for name, value in wanted.settings.items():
            check_topic_setting(name, value)
        places = self._places(wanted)
        self._check_room(len(places))
        topic_id = new_id()
        records: list[MetadataRecord] = [TopicAdded(name=wanted.name, topic_id=topic_id)]
        records += [
            PartitionAdded(topic_id=topic_id, partition=index, replicas=replicas)
            for index, replicas in enumerate(places)
        ]
        records += [
            SettingChanged(resource=Resource.TOPIC, owner=wanted.name, name=name, value=value)
            for name, value in wanted.settings.items()
        ]
        created = TopicCreated(
            name=wanted.name,
            id=topic_id,
            partitions=len(places),
            replication_factor=len(places[0]),
            settings=wanted.settings,
        )
        return Proposal(created, records)

    def _check_collision(self, name: str) -> None:
        """Metric names cannot tell "." from "_", so Kafka allows only one of such a pair; its users expect the same."""
        other = self.image.names_by_plain.get(plain(name))
        if other is not None:
            raise InvalidTopicName(f"{name} is too close to topic {other}: they differ only in '.' and '_'")

    def _check_room(self, partitions: int) -> None:
        most = partitions_per_broker_max * len(self._brokers)
        if self.image.partitions + partitions > most:
            raise PolicyViolation(
                f"{partitions} more partitions: there are {self.image.partitions}, and {most} are the most for "
                f"{len(self._brokers)} brokers; delete topics, or add a broker"
            )

    def _places(self, wanted: NewTopic) -> list[tuple[BrokerId, ...]]:
        if wanted.assignment:
            if sorted(wanted.assignment) != list(range(len(wanted.assignment))):
                raise InvalidReplicaAssignment(f"{wanted.name}: partitions must be numbered from 0 without a gap")
            return [self._checked_replicas(wanted.assignment[index]) for index in range(len(wanted.assignment))]
        if not 0 < wanted.partitions <= partitions_per_topic_max:
            raise InvalidPartitions(
                f"{wanted.name}: {wanted.partitions} partitions; it must be from 1 to {partitions_per_topic_max}"
            )
        return place(wanted.partitions, wanted.replication_factor, self._brokers, len(self.image.topics))

    def _checked_replicas(self, replicas: Sequence[int]) -> tuple[BrokerId, ...]:
        known = {int(broker): broker for broker in self._brokers}
        if not replicas or len(dict.fromkeys(replicas)) != len(replicas) or any(one not in known for one in replicas):
            raise InvalidReplicaAssignment(f"replicas {list(replicas)}: each must be one of {list(known)}, once")
        return tuple(known[one] for one in replicas)

    def delete_topic(self, topic: str | Id) -> Proposal[Topic]:
        found = self.find(topic)
        return Proposal(found, [TopicRemoved(topic_id=found.id)])

    def find(self, topic: str | Id) -> Topic:
        if isinstance(topic, str):
            if topic not in self.image.topics:
                raise UnknownTopic(f"there is no topic {topic}")
            return self.image.topics[topic]
        if topic not in self.image.topics_by_id:
            raise UnknownTopicId(f"there is no topic with id {show_id(topic)}")
        return self.image.topics_by_id[topic]

    def add_partitions(self, wanted: MorePartitions) -> Proposal[Topic]:
        topic = self.find(wanted.topic)
        now = len(topic.partitions)
        if not now < wanted.total <= partitions_per_topic_max:
            raise InvalidPartitions(
                f"{topic.name} has {now} partitions; the new total must be from {now + 1} "
                f"to {partitions_per_topic_max}, not {wanted.total}"
            )
        self._check_room(wanted.total - now)
        if wanted.assignment is None:
            factor = len(topic.partitions[0].replicas)
            places = place(wanted.total - now, factor, self._brokers, len(self.image.topics) + now)
        elif len(wanted.assignment) != wanted.total - now:
            raise InvalidReplicaAssignment(
                f"{wanted.total - now} new partitions, but replicas for {len(wanted.assignment)}"
            )
        else:
            places = [self._checked_replicas(replicas) for replicas in wanted.assignment]
        records: list[MetadataRecord] = [
            PartitionAdded(topic_id=topic.id, partition=now + step, replicas=replicas)
            for step, replicas in enumerate(places)
        ]
        return Proposal(topic, records)

    def change_settings(self, resource: Resource, owner: str, changes: Sequence[SettingChange]) -> Proposal[None]:
        """Apply changes to one topic's or broker's settings, all or none."""
        own = self._own_settings(resource, owner)
        records: list[MetadataRecord] = [
            SettingChanged(resource=resource, owner=owner, name=name, value=value)
            for name, value in changed_settings(resource, own, changes)
        ]
        return Proposal(None, records)

    def replace_settings(self, resource: Resource, owner: str, settings: Mapping[str, str]) -> Proposal[None]:
        """Let these be one topic's or broker's own settings, and no others."""
        own = self._own_settings(resource, owner)
        changes = [
            SettingChange(name=name, operation=Operation.DELETE, value=None) for name in own if name not in settings
        ]
        changes += [SettingChange(name=name, operation=Operation.SET, value=value) for name, value in settings.items()]
        return self.change_settings(resource, owner, changes)

    def _own_settings(self, resource: Resource, owner: str) -> Mapping[str, str]:
        if resource is Resource.TOPIC:
            return self.find(owner).settings
        return self.image.broker_settings.get(owner, {})

    def move_start(self, topic_id: Id, partition: int, start: int) -> Proposal[None]:
        self.find(topic_id)
        return Proposal(None, [PartitionStartMoved(topic_id=topic_id, partition=partition, start=start)])

    def take_producer_ids(self, broker: BrokerId) -> Proposal[range]:
        first = self.image.next_producer_id
        block = range(first, first + producer_ids_per_block)
        return Proposal(block, [ProducerIdsTaken(broker=broker, next_id=block.stop)])

    def raise_features(self, wanted: Mapping[str, int]) -> Proposal[None]:
        """Bring features up to the levels of this release; never down."""
        return Proposal(
            None,
            [
                FeatureRaised(name=name, level=level)
                for name, level in wanted.items()
                if self.image.features.get(name, 0) < level
            ],
        )


def try_each(proposals: Sequence[Callable[[], Proposal[T]]]) -> Proposal[list[T | Fault]]:
    """Several requests as one proposal: each is answered on its own, with its result or its fault.

    The requests must not depend on each other: none sees the records of those before it."""
    answers: list[T | Fault] = []
    records: list[object] = []
    for propose in proposals:
        try:
            proposal = propose()
        except Fault as fault:
            answers.append(fault)
        else:
            answers.append(proposal.answer)
            records += proposal.records
    return Proposal(answers, records)
