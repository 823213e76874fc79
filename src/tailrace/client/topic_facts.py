"""A full description of a topic: its partitions, offsets and settings, from several requests."""

from typing import Final, NamedTuple

from tailrace.client.admin import describe_topic, topic_settings
from tailrace.client.cluster import Cluster
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.model.ids import PartitionName, show_id

SOURCE_TOPIC: Final = 1  # the source, in DescribeConfigs, of a setting that is set on the topic itself


class PartitionFacts(NamedTuple):
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    first_offset: int | None  # None, as the end: it has no leader
    end_offset: int | None


class TopicFacts(NamedTuple):
    name: str
    id: str
    internal: bool
    partitions: list[PartitionFacts]
    settings: dict[str, str]


async def topic_facts(
    cluster: Cluster, name: str, *, committed: bool = False, all_settings: bool = False
) -> TopicFacts:
    """With `committed`, a partition ends at its first open transaction. Settings: those set on the topic, or all."""
    topic = await describe_topic(cluster, name)
    led = [PartitionName(name, one.partition) for one in topic.partitions if one.leader_id >= 0]
    first = await offsets_at(cluster, dict.fromkeys(led, EARLIEST))
    end = await offsets_at(cluster, dict.fromkeys(led, LATEST), committed=committed)
    partitions = [
        PartitionFacts(
            partition=one.partition,
            leader=one.leader_id if one.leader_id >= 0 else None,
            replicas=list(one.replicas),
            in_sync=list(one.isr),
            first_offset=first.get(PartitionName(name, one.partition)),
            end_offset=end.get(PartitionName(name, one.partition)),
        )
        for one in sorted(topic.partitions, key=lambda one: one.partition)
    ]
    settings = {
        one.name: one.value or ""
        for one in sorted(await topic_settings(cluster, name), key=lambda one: one.name)
        if all_settings or one.config_source == SOURCE_TOPIC
    }
    return TopicFacts(name, show_id(topic.topic_id), topic.is_internal, partitions, settings)
