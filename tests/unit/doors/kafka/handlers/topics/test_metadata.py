"""Metadata: all, some or no topics; by name and by id; auto-creation; and the cache of encoded topics."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.doors.kafka.handlers.topics.encoded_topics import EncodedTopics, encoded
from tailrace.doors.kafka.handlers.topics.metadata import with_topics
from tailrace.model.faults import StorageFailed
from tailrace.model.ids import NO_ID, Id
from tailrace.wire.compile import decode_whole, encode
from tailrace.wire.errors import Error
from tailrace.wire.headers import read_response_header, request_header
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.metadata import (
    BrokerMetadata,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicWanted,
)
from tests.unit.doors.kafka.served import ANSWER_MAX_S, Served, serving, versions, with_broker

NEWEST = 13


def wanted(*names: str) -> tuple[TopicWanted, ...]:
    return tuple(TopicWanted(name=name) for name in names)


async def ask(served: Served, version: int, topics: tuple[TopicWanted, ...] | None, **given: Any) -> Any:
    return await served.call(MetadataRequest(topics=topics, **given), version)


def by_name(answer: MetadataResponse) -> dict[str | None, TopicMetadata]:
    return {topic.name: topic for topic in answer.topics}


@with_broker(broker_rack="r1")
async def test_every_version_describes_brokers_and_topics(served: Served) -> None:
    topic_id = await served.make_topic("t", 3)
    node = served.node
    for version in versions(3):
        answer = await ask(served, version, wanted("t"))
        (broker,) = answer.brokers
        assert (broker.node_id, broker.host, broker.port) == (node.broker_id, "127.0.0.1", node.kafka_port)
        assert broker.rack == ("r1" if version >= 1 else None)
        assert answer.controller_id == (node.broker_id if version >= 1 else -1)
        assert answer.cluster_id == (node.meta.cluster_id if version >= 2 else None)
        (topic,) = answer.topics
        assert (topic.name, topic.error_code, topic.is_internal) == ("t", 0, False)
        assert topic.topic_id == (topic_id if version >= 10 else NO_ID)
        assert [one.partition for one in topic.partitions] == [0, 1, 2]
        for one in topic.partitions:
            assert (one.error_code, one.leader_id) == (0, node.broker_id)
            assert one.replicas == one.isr == (node.broker_id,)
            assert one.leader_epoch == (node.hosted.find("t", 0).epoch if version >= 7 else -1)


@with_broker()
async def test_all_and_none(served: Served) -> None:
    for name in ("a", "b"):
        await served.make_topic(name)
    assert list(by_name(await ask(served, 0, ()))) == ["a", "b"]
    assert list(by_name(await ask(served, 1, ()))) == []
    for version in versions(3)[1:]:
        assert list(by_name(await ask(served, version, None))) == ["a", "b"]


@with_broker()
async def test_by_id(served: Served) -> None:
    topic_id, unknown = Id(await served.make_topic("t")), Id(b"\x07" * 16)
    ids = (TopicWanted(name=None, topic_id=topic_id), TopicWanted(name=None, topic_id=unknown))
    for version in (12, 13):
        known, missing = (await ask(served, version, ids)).topics
        assert (known.name, known.topic_id, known.error_code) == ("t", topic_id, 0)
        assert (missing.name, missing.topic_id, missing.error_code) == (None, unknown, Error.UNKNOWN_TOPIC_ID)
    for version in (10, 11):
        (refused,) = (await ask(served, version, ids[:1])).topics
        assert (refused.name, refused.error_code) == ("", Error.INVALID_REQUEST)


@with_broker()
async def test_a_topic_named_twice_is_described_once(served: Served) -> None:
    await served.make_topic("t")
    assert len((await ask(served, NEWEST, wanted("t", "t"))).topics) == 1


@with_broker(num_partitions=2)
async def test_topics_are_made_on_demand(served: Served) -> None:
    for version in versions(3):
        (made,) = (await ask(served, version, wanted(f"t{version}"))).topics
        assert (made.error_code, len(made.partitions)) == (0, 2)
        assert [one.leader_id for one in made.partitions] == [served.node.broker_id] * 2
    for version in range(4, 14):
        (missing,) = (await ask(served, version, wanted("never"), allow_auto_topic_creation=False)).topics
        assert missing.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert "never" not in served.node.hosted.image.topics


@with_broker()
async def test_a_bad_name_is_refused_whether_topics_are_made_or_not(served: Served) -> None:
    for allowed in (True, False):
        answer = await ask(served, NEWEST, wanted("b@d", ""), allow_auto_topic_creation=allowed)
        assert [one.error_code for one in answer.topics] == [Error.INVALID_TOPIC_EXCEPTION] * 2


@with_broker(auto_create_topics_enable=False)
async def test_nothing_is_made_where_the_broker_forbids_it(served: Served) -> None:
    (missing,) = (await ask(served, 0, wanted("t"))).topics
    assert missing.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


@with_broker()
async def test_operations_are_told_where_asked_for(served: Served) -> None:
    await served.make_topic("t")
    for version in range(8, 14):
        asked = await ask(served, version, wanted("t"), include_topic_authorized_operations=True)
        plain = await ask(served, version, wanted("t"))
        assert asked.topics[0].topic_authorized_operations == 0b1101_1111_1000
        assert plain.topics[0].topic_authorized_operations == -(2**31)
    for version in range(8, 11):
        asked = await ask(served, version, (), include_cluster_authorized_operations=True)
        assert asked.cluster_authorized_operations == 0b1_1111_1010_0000


@pytest.mark.parametrize("count", [0, 1, 130])  # 130: a count of two bytes in the flexible form
def test_the_answer_put_together_by_hand_is_the_encoders(count: int) -> None:
    partition = PartitionMetadata(partition=0, leader_id=1, replicas=(1,), isr=(1,))
    topics = [TopicMetadata(name=f"t{number}", partitions=(partition,) * number) for number in range(count)]
    broker = BrokerMetadata(node_id=1, host="h", port=9092)
    for version in versions(3):
        whole = MetadataResponse(brokers=(broker,), cluster_id="c", controller_id=1, topics=tuple(topics))
        empty = encode(replace(whole, topics=()), version)
        by_hand = with_topics(empty, [encoded(topic, version) for topic in topics], version)
        assert by_hand == encode(whole, version)


@with_broker()
async def test_what_is_kept_is_dropped_when_a_topic_changes(served: Served) -> None:
    await served.make_topic("t")
    other = await served.make_topic("other")

    async def partitions() -> list[tuple[int, int]]:
        topic = by_name(await ask(served, NEWEST, None))["t"]
        return [(one.error_code, one.leader_id) for one in topic.partitions]

    me = served.node.broker_id
    assert await partitions() == [(0, me)]
    await served.call(CreatePartitionsRequest(topics=(TopicToGrow(name="t", count=2),)), 3)
    assert await partitions() == [(0, me), (0, me)]
    served.node.hosted.find("t", 1).resign(StorageFailed("its disk is gone"))
    assert await partitions() == [(0, me), (Error.LEADER_NOT_AVAILABLE, -1)]
    await served.call(DeleteTopicsRequest(topics=(TopicToDelete(name="t"),)), 6)
    first = await served.make_topic("t")
    answer = by_name(await ask(served, NEWEST, None))
    assert answer["t"].topic_id == first
    assert answer["other"].topic_id == other
    assert len(answer["t"].partitions) == 1


@with_broker()
async def test_bytes_are_kept_per_version_and_form(served: Served) -> None:
    await served.make_topic("t", 3)
    cache = EncodedTopics(served.node.services.topics)
    topic = served.node.hosted.image.topics["t"]
    kept = {(version, form): cache.get(topic, version, form) for version in versions(3)[8:] for form in (True, False)}
    for (version, form), data in kept.items():
        assert cache.get(topic, version, form) is data
    await served.call(CreatePartitionsRequest(topics=(TopicToGrow(name="t", count=4),)), 3)
    assert len(cache.get(topic, 13, False)) > len(kept[13, False])


def test_metadata_outlives_a_restart(tmp_path: Path) -> None:
    async def first() -> bytes:
        async with serving(tmp_path) as served:
            return await served.make_topic("t", 2)

    async def second() -> TopicMetadata:
        async with serving(tmp_path) as served:
            topic: TopicMetadata = (await ask(served, NEWEST, None)).topics[0]
            return topic

    topic_id = asyncio.run(first())
    topic = asyncio.run(second())
    assert (topic.name, topic.topic_id, len(topic.partitions)) == ("t", topic_id, 2)
    assert all(one.leader_epoch == 1 for one in topic.partitions)


@with_broker()
async def test_bytes_after_the_last_field_are_passed_over(served: Served) -> None:
    """librdkafka's list of all topics in version 13: its null array takes four bytes where one is right."""
    await served.make_topic("t")
    frame = request_header(3, NEWEST, 7, "rdkafka", flexible=True) + bytes.fromhex("00 000000 010000")
    reader, writer = await asyncio.open_connection("127.0.0.1", served.node.kafka_port)
    writer.write(len(frame).to_bytes(4, "big") + frame)
    async with asyncio.timeout(ANSWER_MAX_S):
        answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    writer.close()
    correlation_id, at = read_response_header(answer, 0, 3, flexible=True)
    assert correlation_id == 7
    assert list(by_name(decode_whole(MetadataResponse, NEWEST, answer, at))) == ["t"]
