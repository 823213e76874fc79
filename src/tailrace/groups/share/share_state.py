"""Which partitions a share group has state of, in `__share_group_state`: the value of one record.

A partition must be *initialized* before it is assigned: its leader stores where the group starts to read. Until the
leader has confirmed that, the partition is *initializing*. A topic whose state is being deleted is marked as such and
keeps its partitions here until that is done, so that a new coordinator knows what to delete.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Final

from tailrace.groups.consumer.partition_sets import PartitionSet, by_topic, partition_set
from tailrace.groups.share.records import ShareGroupStatePartitionMetadataValue, TopicToDelete, TopicWithState
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, TopicPartition

BY_RESET_POLICY: Final = -1  # in place of a start offset: the leader applies share.auto.offset.reset


@frozen
class PartitionsWithState:
    initializing: Mapping[TopicPartition, int] = field(default_factory=dict)  # with start offsets
    initialized: PartitionSet = ()
    deleting: Mapping[Id, None] = field(default_factory=dict)  # topics; their partitions are in `initialized`
    names: Mapping[Id, str] = field(default_factory=dict)  # of all these topics

    @classmethod
    def of(cls, value: ShareGroupStatePartitionMetadataValue) -> "PartitionsWithState":
        topics: list[TopicWithState | TopicToDelete] = [*value.initializing_topics, *value.initialized_topics]
        topics += value.deleting_topics
        return cls(
            initializing={
                TopicPartition(Id(topic.topic_id), one): topic.start_offset
                for topic in value.initializing_topics
                for one in topic.partitions
            },
            initialized=partition_set(
                TopicPartition(Id(topic.topic_id), one)
                for topic in value.initialized_topics
                for one in topic.partitions
            ),
            deleting={Id(topic.topic_id): None for topic in value.deleting_topics},
            names={Id(topic.topic_id): topic.topic_name for topic in topics},
        )

    def value(self) -> ShareGroupStatePartitionMetadataValue:
        starts = sorted(dict.fromkeys(self.initializing.values()))
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=tuple(
                topic
                for start in starts
                for topic in self._topics([one for one, at in self.initializing.items() if at == start], start)
            ),
            initialized_topics=self._topics(self.initialized, BY_RESET_POLICY),
            deleting_topics=tuple(TopicToDelete(topic_id=one, topic_name=self.names[one]) for one in self.deleting),
        )

    def _topics(self, partitions: Iterable[TopicPartition], start: int) -> tuple[TopicWithState, ...]:
        return tuple(
            TopicWithState(topic_id=topic, topic_name=self.names[topic], partitions=some, start_offset=start)
            for topic, some in by_topic(partitions).items()
        )

    # Questions

    @property
    def is_settled(self) -> bool:
        """Nothing is being initialized or deleted."""
        return not self.initializing and not self.deleting

    @property
    def readable(self) -> PartitionSet:
        """The partitions that may be assigned."""
        return tuple(one for one in self.initialized if one.topic_id not in self.deleting)

    @property
    def to_delete(self) -> PartitionSet:
        return tuple(one for one in self.initialized if one.topic_id in self.deleting)

    # Changes

    def with_initializing(self, starts: Mapping[TopicPartition, int], names: Mapping[Id, str]) -> "PartitionsWithState":
        """Initialize partitions, again if they are initialized already."""
        return replace(
            self,
            initializing={**self.initializing, **starts},
            initialized=tuple(one for one in self.initialized if one not in starts),
            names={**self.names, **names},
        )

    def with_initialized(self, done: Mapping[TopicPartition, int]) -> "PartitionsWithState":
        """Partitions are initialized with these start offsets; others may have been requested since."""
        valid = [one for one, start in done.items() if self.initializing.get(one) == start]
        return replace(
            self,
            initializing={one: start for one, start in self.initializing.items() if one not in valid},
            initialized=partition_set((*self.initialized, *valid)),
        )

    def with_deleting(self, topics: Iterable[Id]) -> "PartitionsWithState":
        """Mark topics. A leader may already have stored state of a partition that is initializing."""
        marked = {one: None for one in topics if one in self.names}
        moved = [one for one in self.initializing if one.topic_id in marked]
        return replace(
            self,
            initializing={one: start for one, start in self.initializing.items() if one not in moved},
            initialized=partition_set((*self.initialized, *moved)),
            deleting={**self.deleting, **marked},
        )

    def without(self, gone: Iterable[TopicPartition]) -> "PartitionsWithState":
        """The state of these partitions, all of topics that are marked, has been deleted."""
        dropped = dict.fromkeys(gone)
        left = tuple(one for one in self.initialized if one not in dropped)
        topics = {one.topic_id: None for one in (*left, *self.initializing)}
        return replace(
            self,
            initialized=left,
            deleting={one: None for one in self.deleting if one in topics},
            names={one: name for one, name in self.names.items() if one in topics},
        )
