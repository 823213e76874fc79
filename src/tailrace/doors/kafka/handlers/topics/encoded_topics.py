"""A cache of encoded topics for Metadata responses.

Clients request metadata often, and large topics take long to encode. So each topic is encoded once per API version; the
bytes are dropped when the topic gets more partitions, is deleted, or one of its leaders changes.
"""

from tailrace.broker.services import Topics
from tailrace.cluster.image import Topic
from tailrace.doors.kafka.authorized_operations import allowed_on_topic
from tailrace.doors.kafka.handlers.topics.partition_states import partition_states
from tailrace.model.ids import Id
from tailrace.model.limits import ENCODED_TOPICS_KEPT_MAX_BYTES
from tailrace.model.topics import INTERNAL_TOPICS
from tailrace.wire.compile import is_flexible
from tailrace.wire.encoder import encoder
from tailrace.wire.messages.metadata import MetadataResponse, TopicMetadata


class EncodedTopics:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._kept: dict[Id, dict[tuple[int, bool], bytes]] = {}  # by topic, then (version, with authorized operations)
        self._kept_bytes = 0
        topics.watch(self._forget)

    def get(self, topic: Topic, version: int, operations: bool) -> bytes:
        """A topic, encoded as an element of the array of topics."""
        forms = self._kept.get(topic.id)
        if forms is not None and (found := forms.get((version, operations))) is not None:
            return found
        data = encoded(self._described(topic, operations), version)
        if self._kept_bytes + len(data) > ENCODED_TOPICS_KEPT_MAX_BYTES:
            self._kept.clear()
            self._kept_bytes = 0
        self._kept.setdefault(topic.id, {})[version, operations] = data
        self._kept_bytes += len(data)
        return data

    def _described(self, topic: Topic, operations: bool) -> TopicMetadata:
        return TopicMetadata(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=tuple(partition_states(self._topics, topic)),
            topic_authorized_operations=allowed_on_topic(operations),
        )

    def _forget(self, topic_id: Id) -> None:
        forms = self._kept.pop(topic_id, None)
        if forms is not None:
            self._kept_bytes -= sum(map(len, forms.values()))


def encoded(topic: TopicMetadata, version: int) -> bytes:
    out = bytearray()
    encoder(TopicMetadata, version, is_flexible(MetadataResponse, version))(topic, out)
    return bytes(out)
