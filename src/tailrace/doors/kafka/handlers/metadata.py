"""Metadata: which brokers there are, and who leads what; asking for a topic may create it.

A topic's part of the answer is kept as a value until its leaders or its place in the image change, so that clients of
large topics do not make the broker describe them again and again.
"""

from collections.abc import Iterable
from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.faults import error_of
from tailrace.doors.kafka.topics import create_topics_by_default
from tailrace.model.faults import Fault, UnknownTopic, UnknownTopicId
from tailrace.model.ids import NO_ID, Id, show_id
from tailrace.model.topics import internal_topics
from tailrace.wire.messages.metadata import (
    BrokerMetadata,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicWanted,
)

leader_of_nobody: Final = -1


async def metadata(request: MetadataRequest, call: Call) -> MetadataResponse:
    node = call.node
    wanted = request.topics
    if wanted is None or (call.version == 0 and not wanted):
        topics: Iterable[TopicMetadata] = [describe(call, name) for name in node.replicas.image.topics]
    else:
        missing = {one.name: None for one in wanted if one.name is not None and one.topic_id == NO_ID}
        missing = {name: None for name in missing if name not in node.replicas.image.topics}
        refused: dict[str, Fault] = {}
        if missing and request.allow_auto_topic_creation and node.settings.auto_create_topics_enable:
            refused = await create_topics_by_default(call, list(missing))
        topics = [_one(call, one, refused) for one in wanted]
    return MetadataResponse(
        brokers=(
            BrokerMetadata(
                node_id=node.broker_id,
                host=node.advertised_host,
                port=node.kafka_port,
                rack=node.settings.broker_rack or None,
            ),
        ),
        cluster_id=node.meta.cluster_id,
        controller_id=node.broker_id,
        topics=tuple(topics),
    )


def _one(call: Call, wanted: TopicWanted, refused: dict[str, Fault]) -> TopicMetadata:
    image = call.node.replicas.image
    if wanted.topic_id != NO_ID:
        topic = image.topics_by_id.get(Id(wanted.topic_id))
        if topic is None:
            fault: Fault = UnknownTopicId(f"there is no topic with id {show_id(wanted.topic_id)}")
            return TopicMetadata(error_code=error_of(fault), name=None, topic_id=wanted.topic_id)
        return describe(call, topic.name)
    name = wanted.name or ""
    if name in image.topics:
        return describe(call, name)
    fault = refused.get(name) or UnknownTopic(f"there is no topic {name}")
    return TopicMetadata(error_code=error_of(fault), name=name)


def describe(call: Call, name: str) -> TopicMetadata:
    node = call.node
    topic = node.replicas.image.topics[name]
    partitions = node.replicas.of_topic(topic.id)
    return TopicMetadata(
        name=name,
        topic_id=topic.id,
        is_internal=name in internal_topics,
        partitions=tuple(
            PartitionMetadata(
                partition=index,
                leader_id=node.broker_id if index < len(partitions) and partitions[index].leads else leader_of_nobody,
                leader_epoch=partitions[index].epoch if index < len(partitions) else -1,
                replicas=place.replicas,
                isr=place.replicas,
            )
            for index, place in enumerate(topic.partitions)
        ),
    )
