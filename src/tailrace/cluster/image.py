"""The metadata image: the state that results from replaying the records of `__cluster_metadata`.

Only `replay` changes an image, both at start-up and later. The controller replays records as it appends them; every
broker replays them once they are committed, and serves requests from its image.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import assert_never

from tailrace.cluster.brokers import Broker, Load, registered
from tailrace.cluster.features import FIRST_LEVEL, METADATA_VERSION
from tailrace.cluster.records import (
    BrokerFenced,
    BrokerRegistered,
    FeatureRaised,
    MetadataRecord,
    PartitionAdded,
    PartitionLed,
    PartitionStartMoved,
    PartitionWidened,
    ProducerIdsTaken,
    SettingChanged,
    TopicAdded,
    TopicRemoved,
)
from tailrace.model.ids import NO_BROKER, NO_EPOCH, BrokerId, Epoch, Id


class Resource(IntEnum):
    """The kinds of resources that have settings, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


@dataclass(slots=True)
class PartitionPlace:
    """The replicas, leader, ISR and log start offset of one partition."""

    replicas: tuple[BrokerId, ...]  # the preferred leader first
    founders: tuple[BrokerId, ...]  # the first replicas: the voters, until the log has a voter set
    directories: tuple[Id, ...]  # the directory ids (disks) of the founders
    leader: BrokerId = NO_BROKER  # of `epoch`; another leader has a later epoch
    epoch: Epoch = NO_EPOCH  # never decreases; -1: there was no leader yet
    in_sync: tuple[BrokerId, ...] = ()  # the ISR, as last reported by the leader
    start: int = 0  # the log start offset that DeleteRecords set; never decreases


@dataclass(slots=True)
class Topic:
    name: str
    id: Id
    partitions: list[PartitionPlace] = field(default_factory=list)  # by partition number
    settings: dict[str, str] = field(default_factory=dict)  # the topic's own; the broker's defaults apply to the rest


def plain(name: str) -> str:
    """A topic's name as in metrics, which have "_" in place of "."."""
    return name.replace(".", "_")


def is_news(place: PartitionPlace, report: PartitionLed) -> bool:
    """Whether a leader's report is new: reports may arrive out of order, and an epoch has only one leader."""
    if report.epoch == place.epoch:
        return report.leader == place.leader and report.in_sync != place.in_sync
    return report.epoch > place.epoch


@dataclass(slots=True)
class Image:
    brokers: dict[BrokerId, Broker] = field(default_factory=dict)  # all brokers that ever joined
    load: Load = field(default_factory=Load)  # of all partitions of all topics
    topics: dict[str, Topic] = field(default_factory=dict)
    topics_by_id: dict[Id, Topic] = field(default_factory=dict)
    names_by_plain: dict[str, str] = field(default_factory=dict)  # topic names by their form in metrics
    removed: dict[Id, str] = field(default_factory=dict)  # deleted topics: brokers may remove their directories
    broker_settings: dict[str, dict[str, str]] = field(default_factory=dict)  # by broker id as text; "": all brokers
    group_settings: dict[str, dict[str, str]] = field(default_factory=dict)  # by group id; the group need not exist
    features: dict[str, int] = field(default_factory=dict)  # the levels in force, which never fall, by name
    next_producer_id: int = 0  # never decreases: lower ids are taken

    def replay(self, record: MetadataRecord) -> None:
        match record:
            case TopicAdded():
                topic = Topic(record.name, Id(record.topic_id))
                self.topics[topic.name] = self.topics_by_id[topic.id] = topic
                self.names_by_plain[plain(topic.name)] = topic.name
            case PartitionAdded():
                self._add_partition(record)
            case PartitionStartMoved():
                place = self.topics_by_id[Id(record.topic_id)].partitions[record.partition]
                place.start = max(place.start, record.start)
            case PartitionLed():
                self._lead(record)
            case PartitionWidened():
                self._widen(record)
            case TopicRemoved():
                self._remove_topic(Id(record.topic_id))
            case BrokerRegistered():
                self.brokers[BrokerId(record.broker_id)] = registered(record)
            case BrokerFenced():
                broker = BrokerId(record.broker_id)
                self.brokers[broker] = replace(self.brokers[broker], fenced=record.fenced)
            case SettingChanged():
                self._change_setting(record)
            case FeatureRaised():
                self.features[record.name] = record.level
            case ProducerIdsTaken():
                self.next_producer_id = max(self.next_producer_id, record.next_id)
            case _:
                assert_never(record)

    def _add_partition(self, record: PartitionAdded) -> None:
        partitions = self.topics_by_id[Id(record.topic_id)].partitions
        assert record.partition == len(partitions), "partitions are added in order"
        replicas = tuple(BrokerId(one) for one in record.replicas)
        place = PartitionPlace(
            replicas=replicas,
            founders=replicas,
            directories=tuple(Id(one) for one in record.directories),
        )
        partitions.append(place)
        self.load.add(place.replicas)

    def _widen(self, record: PartitionWidened) -> None:
        place = self.place(Id(record.topic_id), record.partition)
        if place is not None:
            self.load.remove(place.replicas)
            place.replicas = tuple(BrokerId(one) for one in record.replicas)
            self.load.add(place.replicas)

    def _lead(self, record: PartitionLed) -> None:
        place = self.place(Id(record.topic_id), record.partition)
        if place is not None and is_news(place, record):
            place.leader, place.epoch = BrokerId(record.leader), Epoch(record.epoch)
            place.in_sync = tuple(BrokerId(one) for one in record.in_sync)

    def _remove_topic(self, topic_id: Id) -> None:
        topic = self.topics_by_id.pop(topic_id)
        del self.topics[topic.name]
        del self.names_by_plain[plain(topic.name)]
        for place in topic.partitions:
            self.load.remove(place.replicas)
        self.removed[topic.id] = topic.name

    def _change_setting(self, record: SettingChanged) -> None:
        if record.resource == Resource.TOPIC:
            own = self.topics[record.owner].settings
        elif record.resource == Resource.GROUP:
            own = self.group_settings.setdefault(record.owner, {})
        else:
            own = self.broker_settings.setdefault(record.owner, {})
        if record.value is None:
            own.pop(record.name, None)
        else:
            own[record.name] = record.value
        if record.resource == Resource.GROUP and not own:
            del self.group_settings[record.owner]

    @property
    def level(self) -> int:
        """The level of metadata.version in force; the first one, while a new cluster has none yet."""
        return self.features.get(METADATA_VERSION, FIRST_LEVEL)

    @property
    def live(self) -> Sequence[BrokerId]:
        """The live brokers, in the order of their ids."""
        return sorted(broker.id for broker in self.brokers.values() if not broker.fenced)

    def place(self, topic_id: Id, partition: int) -> PartitionPlace | None:
        """The state of a partition; None: it does not exist."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None or not 0 <= partition < len(topic.partitions):
            return None
        return topic.partitions[partition]
