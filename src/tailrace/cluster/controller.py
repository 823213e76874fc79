"""The controller: what is asked of the cluster, as records proposed for its metadata log.

Each method looks at the image and returns a `Proposal`: the records to append and the answer to give once they are
committed. It changes no image itself; the coordinator runtime appends the records and replays them.
A request for several things answers each on its own: one bad topic does not spoil the others.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from tailrace.cluster import feature_updates, membership, topics
from tailrace.cluster.brokers import Broker, Load
from tailrace.cluster.feature_updates import FeatureUpdate
from tailrace.cluster.features import SUPPORTED_FEATURES, Features
from tailrace.cluster.image import Image, Resource, Topic, is_news, plain
from tailrace.cluster.membership import Joining
from tailrace.cluster.records import (
    MetadataRecord,
    PartitionAdded,
    PartitionLed,
    PartitionStartMoved,
    ProducerIdsTaken,
    SettingChanged,
    TopicAdded,
    TopicRemoved,
)
from tailrace.cluster.settings import Operation, SettingChange, changed_settings
from tailrace.cluster.topics import MorePartitions, NewTopic, TopicCreated, too_close
from tailrace.model.faults import Fault, UnknownTopic, UnknownTopicId
from tailrace.model.ids import BrokerId, Id, show_id
from tailrace.model.proposal import Proposal

__all__ = ["PRODUCER_IDS_PER_BLOCK", "Controller", "MorePartitions", "NewTopic", "TopicCreated", "try_each"]

T = TypeVar("T")

PRODUCER_IDS_PER_BLOCK: Final = 1000


class Controller:
    def __init__(self, supported: Features = SUPPORTED_FEATURES) -> None:
        self.image = Image()
        self.supported = supported  # the feature levels of this release
        self._ahead: Load | None = None  # with what was placed since the last replay, appended or not: it only spreads

    def replay(self, record: MetadataRecord) -> None:
        self.image.replay(record)
        self._ahead = None

    # Brokers

    def join(self, one: Joining) -> Proposal[BrokerId]:
        """A disk becomes a broker of this cluster; the answer is its number. It is fenced until it registers."""
        return membership.join(self.image, one)

    def register(self, broker: Broker) -> Proposal[None]:
        """A broker has started: where it is found, and which feature levels it supports."""
        return membership.register(self.image, broker)

    def fence(self, broker: BrokerId) -> Proposal[None]:
        return membership.fence(self.image, broker)

    # Topics

    def create_topic(self, wanted: NewTopic, new_id: Callable[[], Id]) -> Proposal[TopicCreated]:
        return self._placed(topics.create(self.image, self._load(), wanted, new_id))

    def add_partitions(self, wanted: MorePartitions) -> Proposal[Topic]:
        return self._placed(topics.grow(self.image, self._load(), self.find(wanted.topic), wanted))

    def widen(self, topic: str, factor: int) -> Proposal[None]:
        """Give a topic of the brokers' own the replicas that there were too few brokers for when it was made."""
        if topic not in self.image.topics:
            return Proposal(None)
        return topics.widen(self.image, self.image.load, self.image.topics[topic], factor)

    def _load(self) -> Load:
        """What brokers hold, or soon will: the topics of one request are placed before any of them is replayed."""
        if self._ahead is None:
            self._ahead = self.image.load.copy()
        return self._ahead

    def _placed(self, proposal: Proposal[T]) -> Proposal[T]:
        load = self._load()
        for record in proposal.records:
            if isinstance(record, PartitionAdded):
                load.add([BrokerId(one) for one in record.replicas])
        return proposal

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

    def move_start(self, topic_id: Id, partition: int, start: int) -> Proposal[None]:
        self.find(topic_id)
        return Proposal(None, [PartitionStartMoved(topic_id=topic_id, partition=partition, start=start)])

    # Leaders

    def report_leaders(self, reports: Sequence[PartitionLed]) -> Proposal[None]:
        """What leaders say of their partitions, as far as it is news."""
        return Proposal(None, [report for report in reports if self._is_news(report)])

    def _is_news(self, report: PartitionLed) -> bool:
        place = self.image.place(Id(report.topic_id), report.partition)
        return place is not None and is_news(place, report)

    # Settings, producer ids, features

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
        if resource is Resource.GROUP:
            return self.image.group_settings.get(owner, {})
        return self.image.broker_settings.get(owner, {})

    def take_producer_ids(self, broker: BrokerId) -> Proposal[range]:
        first = self.image.next_producer_id
        block = range(first, first + PRODUCER_IDS_PER_BLOCK)
        return Proposal(block, [ProducerIdsTaken(broker=broker, next_id=block.stop)])

    def found(self) -> Proposal[None]:
        """The feature levels of a new cluster. An older one keeps its levels until somebody raises them."""
        return feature_updates.found(self.image, self.supported)

    def update_features(self, updates: Sequence[FeatureUpdate]) -> Proposal[None]:
        """Raise features, all or none."""
        return feature_updates.update(self.image, self.supported, updates)


def try_each(proposals: Sequence[Callable[[], Proposal[T]]]) -> Proposal[list[T | Fault]]:
    """Several requests as one proposal: each is answered on its own, with its result or its fault.

    The requests must not depend on each other: none sees the records of those before it. Only the names of new topics
    are compared."""
    answers: list[T | Fault] = []
    records: list[object] = []
    names: dict[str, str] = {}  # of topics made so far, by what metrics make of them
    for propose in proposals:
        try:
            proposal = propose()
            _take_names(names, proposal.records)
        except Fault as fault:
            answers.append(fault.with_traceback(None))  # of thousands, it would hold thousands of frames
        else:
            answers.append(proposal.answer)
            records += proposal.records
    return Proposal(answers, records)


def _take_names(names: dict[str, str], records: Sequence[object]) -> None:
    for record in records:
        if isinstance(record, TopicAdded):
            if (other := names.get(plain(record.name))) is not None:
                raise too_close(record.name, other)
            names[plain(record.name)] = record.name
