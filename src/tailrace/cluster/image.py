"""What the cluster's metadata says: a fold over the records of `__cluster_metadata`.

Only `replay` changes an image, live and at start-up alike. The controller folds records as it appends them; every
broker folds them when they are committed, and serves from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import assert_never

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
from tailrace.model.ids import BrokerId, Id


class Resource(IntEnum):
    """What a setting belongs to, in Kafka's numbers."""

    TOPIC = 2
    BROKER = 4


@dataclass(slots=True)
class PartitionPlace:
    """Where one partition lives, and where its records begin."""

    replicas: tuple[BrokerId, ...]  # the preferred leader first
    start: int = 0  # never falls: DeleteRecords moved the log's start here


@dataclass(slots=True)
class Topic:
    name: str
    id: Id
    partitions: list[PartitionPlace] = field(default_factory=list)  # by partition number
    settings: dict[str, str] = field(default_factory=dict)  # its own; the rest are the broker's defaults


def plain(name: str) -> str:
    """A topic's name in a metric, which cannot tell "." from "_"."""
    return name.replace(".", "_")


@dataclass(slots=True)
class Image:
    topics: dict[str, Topic] = field(default_factory=dict)
    topics_by_id: dict[Id, Topic] = field(default_factory=dict)
    names_by_plain: dict[str, str] = field(default_factory=dict)  # topics' names by what metrics make of them
    partitions: int = 0  # of all topics
    removed: dict[Id, str] = field(default_factory=dict)  # topics that were here: their folders may be deleted
    broker_settings: dict[str, dict[str, str]] = field(default_factory=dict)  # by broker id as text; "": all brokers
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0  # never falls: ids below are somebody's

    def replay(self, record: MetadataRecord) -> None:
        match record:
            case TopicAdded():
                topic = Topic(record.name, Id(record.topic_id))
                self.topics[topic.name] = self.topics_by_id[topic.id] = topic
                self.names_by_plain[plain(topic.name)] = topic.name
            case PartitionAdded():
                partitions = self.topics_by_id[Id(record.topic_id)].partitions
                assert record.partition == len(partitions), "partitions are added in order"
                partitions.append(PartitionPlace(tuple(BrokerId(one) for one in record.replicas)))
                self.partitions += 1
            case PartitionStartMoved():
                place = self.topics_by_id[Id(record.topic_id)].partitions[record.partition]
                place.start = max(place.start, record.start)
            case TopicRemoved():
                topic = self.topics_by_id.pop(Id(record.topic_id))
                del self.topics[topic.name]
                if self.names_by_plain.get(plain(topic.name)) == topic.name:  # one request may have made two alike
                    del self.names_by_plain[plain(topic.name)]
                self.partitions -= len(topic.partitions)
                self.removed[topic.id] = topic.name
            case SettingChanged():
                self._change_setting(record)
            case FeatureRaised():
                self.features[record.name] = record.level
            case ProducerIdsTaken():
                self.next_producer_id = max(self.next_producer_id, record.next_id)
            case _:
                assert_never(record)

    def _change_setting(self, record: SettingChanged) -> None:
        if record.resource == Resource.TOPIC:
            own = self.topics[record.owner].settings
        else:
            own = self.broker_settings.setdefault(record.owner, {})
        if record.value is None:
            own.pop(record.name, None)
        else:
            own[record.name] = record.value

    def replay_all(self, records: Sequence[MetadataRecord]) -> None:
        for record in records:
            self.replay(record)
