"""Description of a topic: its partitions, offsets and settings, from several requests to the broker."""

from typing import Final, TypedDict

from tailrace.client.admin import describe_topic, topic_settings
from tailrace.client.cluster import Cluster
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.model.ids import PartitionName, show_id

SOURCE_TOPIC: Final = 1  # the source, in DescribeConfigs, of a setting that is set on the topic itself


class PartitionFacts(TypedDict):
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    first_offset: int | None
    end_offset: int | None


class TopicFacts(TypedDict):
    name: str
    id: str
    internal: bool
    partitions: list[PartitionFacts]
    settings: dict[str, str]


async def topic_facts(cluster: Cluster, name: str, *, all_settings: bool) -> TopicFacts:
    topic = await describe_topic(cluster, name)
    led = [PartitionName(name, one.partition) for one in topic.partitions if one.leader_id >= 0]
    first = await offsets_at(cluster, dict.fromkeys(led, EARLIEST))
    end = await offsets_at(cluster, dict.fromkeys(led, LATEST))
    settings = await topic_settings(cluster, name)
    return {
        "name": name,
        "id": show_id(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": one.partition,
                "leader": one.leader_id if one.leader_id >= 0 else None,
                "replicas": list(one.replicas),
                "in_sync": list(one.isr),
                "first_offset": first.get(PartitionName(name, one.partition)),
                "end_offset": end.get(PartitionName(name, one.partition)),
            }
            for one in sorted(topic.partitions, key=lambda one: one.partition)
        ],
        "settings": {
            one.name: one.value or ""
            for one in sorted(settings, key=lambda one: one.name)
            if all_settings or one.config_source == SOURCE_TOPIC
        },
    }
