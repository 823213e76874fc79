"""What groups must know of the cluster, as this broker's committed metadata has it: topics, groups' settings, level."""

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
        self._names_of = -1  # which revision they are of

    def level(self) -> int:
        """The level of metadata.version in force."""
        return self._image().level

    def committed(self, records: Sequence[object]) -> None:
        """They are in the image already."""
        if any(isinstance(record, TopicAdded | PartitionAdded | TopicRemoved) for record in records):
            self.revision += 1

    def gone(self) -> list[str]:
        """Names of topics that were deleted, and of none that is there."""
        image = self._image()
        return [name for name in dict.fromkeys(image.removed.values()) if name not in image.topics]

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
        if self._names_of != self.revision:
            self._names_of = self.revision
            self._names = dict.fromkeys(self._image().topics)
        return self._names
