"""Look a topic up, and make it if there is none."""

from tailrace.client.admin import create_topics
from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig


async def make_topic(cluster: Cluster, name: str, partitions: int, **settings: str) -> bool:
    """Whether the topic is new; a topic that exists already stays as it is."""
    configs = tuple(NewTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items())
    wanted = NewTopic(name=name, num_partitions=partitions, replication_factor=-1, configs=configs)
    refused = (await create_topics(cluster, [wanted]))[name]
    if refused is not None and refused.error is not Error.TOPIC_ALREADY_EXISTS:
        raise refused
    cluster.map.updated_at.pop(name, None)
    await cluster.refresh([name])
    return refused is None


async def partitions_of(cluster: Cluster, topic: str) -> int | None:
    """How many partitions a topic has; None if there is no such topic."""
    known = cluster.map
    if not known.has_topic(topic) or cluster.is_stale(topic):

        async def ask() -> Error:
            (found,) = (await cluster.refresh([topic])).topics
            if found.error_code in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_TOPIC_EXCEPTION):
                return Error.UNKNOWN_TOPIC_OR_PARTITION
            if found.error_code and not known.has_topic(topic):
                raise Refused(found.error_code, f"find topic {topic}")
            return Error.NONE

        if await cluster.retry(f"find topic {topic}", ask) is not Error.NONE:
            return None
    return known.partition_counts.get(topic)
