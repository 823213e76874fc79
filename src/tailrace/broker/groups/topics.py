"""The part of the committed metadata that groups need: topics, group settings, and the level of metadata.version."""

from collections.abc import Callable, Mapping, Sequence

from tailrace.cluster.image import Image
from tailrace.cluster.records import PartitionAdded, TopicAdded, TopicRemoved
from tailrace.groups.topics import KnownTopic
from tailrace.model.ids import Id


class ClusterTopics:
    def __init__(self, image: Callable[[], Image]) -> None:
        self._image = image
        self.revision = 0
        self._names: Mapping[str, None] = {}
        self._names_revision = -1  # the revision that `_names` is of

    def level(self) -> int:
        """The level of metadata.version in force."""
        return self._image().level

    def committed(self, records: Sequence[object]) -> None:
        """Metadata records were committed, and are in the image already."""
        if any(isinstance(record, TopicAdded | PartitionAdded | TopicRemoved) for record in records):
            self.revision += 1

    def deleted(self) -> list[str]:
        """Names of deleted topics, without those of existing ones."""
        image = self._image()
        return [name for name in dict.fromkeys(image.removed.values()) if name not in image.topics]

    def is_deleted(self, topic_id: Id) -> bool:
        return topic_id in self._image().removed

    @property
    def group_settings(self) -> Mapping[str, Mapping[str, str]]:
        return self._image().group_settings

    def find(self, name: str) -> KnownTopic | None:
        topic = self._image().topics.get(name)
        return None if topic is None else KnownTopic(topic.id, len(topic.partitions))

    def name_of(self, topic_id: Id) -> str | None:
        topic = self._image().topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Mapping[str, None]:
        """All topics, internal ones among them, as in Kafka: a client excludes those by its expression."""
        if self._names_revision != self.revision:
            self._names_revision = self.revision
            self._names = dict.fromkeys(self._image().topics)
        return self._names
