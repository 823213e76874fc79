"""Look a topic up, and make it if there is none.

Brokers lag behind the controller. A topic that the broker asked does not know is looked up at the controller, too: it
may have just been created, through another broker.
"""

from tailrace.client.admin import create_topics
from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import Refused
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse, TopicMetadata, TopicWanted


async def make_topic(cluster: Cluster, name: str, partitions: int, **settings: str) -> bool:
    """Whether the topic is new; a topic that exists already stays as it is. `partitions_of` knows it from now on."""
    configs = tuple(NewTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items())
    wanted = NewTopic(name=name, num_partitions=partitions, replication_factor=-1, configs=configs)
    refused = (await create_topics(cluster, [wanted]))[name]
    if refused is not None and refused.error is not Error.TOPIC_ALREADY_EXISTS:
        raise refused
    cluster.map.updated_at.pop(name, None)

    async def ask() -> None:
        found = await _look_up(cluster, name)
        if found.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise Refused(found.error_code, f"find topic {name}")

    await cluster.retry(f"find topic {name}", ask)
    return refused is None


async def partitions_of(cluster: Cluster, topic: str) -> int | None:
    """How many partitions a topic has; None if there is no such topic."""
    known = cluster.map
    if not known.has_topic(topic) or cluster.is_stale(topic):

        async def ask() -> Error:
            found = await _look_up(cluster, topic)
            if found.error_code in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_TOPIC_EXCEPTION):
                return Error.UNKNOWN_TOPIC_OR_PARTITION
            if found.error_code and not known.has_topic(topic):
                raise Refused(found.error_code, f"find topic {topic}")
            return Error.NONE

        if await cluster.retry(f"find topic {topic}", ask) is not Error.NONE:
            return None
    return known.partition_counts.get(topic)


async def _look_up(cluster: Cluster, topic: str) -> TopicMetadata:
    """What the cluster says of a topic, also taken into the map."""
    (found,) = (await cluster.refresh([topic])).topics
    if found.error_code != Error.UNKNOWN_TOPIC_OR_PARTITION:
        return found
    controller = cluster.map.brokers.get(cluster.map.controller)
    if controller is None:
        raise Retry(f"topic {topic} is not known yet, and the cluster has no controller")
    wanted = (TopicWanted(name=topic),)
    response = await cluster.call(controller, MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
    assert isinstance(response, MetadataResponse)
    cluster.map.update(response)
    cluster.map.note_update(response, cluster.driver.now())
    return response.topics[0]
