"""Topic ids and topics: id 7 is the topic `dmqp-7`, unless the setting `dmqp.topics` names another.

The door creates a topic when the first message is pushed to it: with the shards of `dmqp.shards`, as many replicas as
the cluster gives by default (in a gateway three, or as many as there are brokers: the default of Apache Kafka is one),
and without an end to retention, since a message is kept until it was popped. A payload of
exactly 1 MiB needs a larger batch around it, so the topic allows one. A topic that exists is used as it is.
"""

from collections.abc import Mapping
from typing import Final

from tailrace.client.admin import create_topics
from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import check
from tailrace.doors.upstream import Upstream
from tailrace.model.dmqp_topics import DMQP_TOPIC_IDS
from tailrace.model.limits import DMQP_PAYLOAD_MAX_BYTES, KiB
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig

DEFAULT_REPLICAS: Final = -1
REPLICAS: Final = 3  # of topics that a gateway creates
BATCH_OVERHEAD_BYTES: Final = 64 * KiB  # around one payload: far more than a batch header and a record's lengths take
SETTINGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(DMQP_PAYLOAD_MAX_BYTES + BATCH_OVERHEAD_BYTES),
}


class Topics:
    def __init__(self, upstream: Upstream, shards: int, table: Mapping[int, str]) -> None:
        self._upstream = upstream
        self._shards = shards
        self._table = table

    @property
    def _cluster(self) -> Cluster:
        return self._upstream.cluster

    def name(self, topic_id: int) -> str:
        return self._table.get(topic_id) or default_name(topic_id)

    def kept_until_popped(self) -> dict[str, str]:
        """The names of the topics that are the door's own, each with its group: those that the table does not name."""
        return {default_name(one): group_of(one) for one in DMQP_TOPIC_IDS if one not in self._table}

    async def find(self, topic_id: int) -> str | None:
        """The name of the topic; None if there is no such topic yet."""
        name = self.name(topic_id)
        if self._cluster.map.has_topic(name):
            return name

        async def look() -> bool:
            (topic,) = (await self._cluster.refresh([name])).topics
            if topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                return False
            check(topic.error_code, f"find topic {name}")
            return True

        return name if await self._cluster.retry(f"find topic {name}", look) else None

    async def open(self, topic_id: int) -> str:
        """The name of the topic, which is created if it does not exist."""
        name = self.name(topic_id)
        if not self._cluster.map.has_topic(name) and await self.find(topic_id) is None:
            await self._cluster.driver.share(("create a topic", self, name), lambda: self._create(name))
        return name

    async def _create(self, name: str) -> None:
        configs = tuple(NewTopicConfig(name=key, value=value) for key, value in SETTINGS.items())
        is_gateway = self._upstream.broker_id is None
        replicas = min(REPLICAS, len(self._cluster.map.brokers)) if is_gateway else DEFAULT_REPLICAS
        topic = NewTopic(name=name, num_partitions=self._shards, replication_factor=replicas, configs=configs)
        refused = (await create_topics(self._cluster, [topic]))[name]
        if refused is not None and refused.error is not Error.TOPIC_ALREADY_EXISTS:
            raise refused

        async def look() -> None:
            (found,) = (await self._cluster.refresh([name])).topics
            if found.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise Retry(f"the broker does not know {name} yet")
            check(found.error_code, f"find topic {name}")

        await self._cluster.retry(f"find topic {name}", look)


def default_name(topic_id: int) -> str:
    return f"dmqp-{topic_id}"


def group_of(topic_id: int) -> str:
    """The share group through which the messages of a topic id are popped."""
    return f"dmqp-{topic_id}"
