"""What a broker refuses reaches people as the error that their client has for it."""

import time
from collections.abc import Callable

import pytest

from tests.interop.client import Client, Code, Refused
from tests.interop.feature import feature
from tests.interop.messages import Message, Sending
from tests.interop.shapes import TopicPlan
from tests.interop.test_writing import BATCH_OVERHEAD_BYTES, DEFAULT_MAX_BATCH_BYTES


def code_of(act: Callable[[], object]) -> int:
    with pytest.raises(Refused) as refused:
        act()
    assert refused.value.code >= 0, refused.value  # what the client said, where nothing of the broker's is in it
    return refused.value.code


@feature("create a topic that exists", "create_topic")
def test_topic_exists(client: Client, topic: str) -> None:
    assert code_of(lambda: client.create_topic(topic)) == Code.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("bad", ["with space", "sl/ash", "x" * 250, ".."], ids=["space", "slash", "long", "dots"])
@feature("create a topic with a name that is not allowed", "create_topic")
def test_bad_name(client: Client, bad: str) -> None:
    assert code_of(lambda: client.create_topic(bad)) == Code.INVALID_TOPIC_EXCEPTION


@feature("produce to a topic with a name that is not allowed", "produce", "error when a name is bad")
def test_produce_to_bad_name(client: Client) -> None:
    assert code_of(lambda: client.produce("with space", [Message(value=b"v")])) == Code.INVALID_TOPIC_EXCEPTION


@feature("create a topic with no partitions", "create_topic")
def test_no_partitions(client: Client, name: str) -> None:
    assert code_of(lambda: client.create_topic(name, TopicPlan(partitions=0))) == Code.INVALID_PARTITIONS


@feature("create a topic with more replicas than brokers", "create_topic")
def test_too_many_replicas(client: Client, name: str) -> None:
    assert code_of(lambda: client.create_topic(name, TopicPlan(replication=9))) == Code.INVALID_REPLICATION_FACTOR


@feature("create a topic with a bad value of a setting", "create_topic")
def test_bad_value(client: Client, name: str) -> None:
    settings = {"retention.ms": "tomorrow"}
    assert code_of(lambda: client.create_topic(name, TopicPlan(settings=settings))) == Code.INVALID_CONFIG
    assert name not in client.list_topics()


@feature("create a topic with a setting that does not exist", "create_topic")
def test_unknown_setting(client: Client, name: str) -> None:
    settings = {"retention.days": "3"}
    assert code_of(lambda: client.create_topic(name, TopicPlan(settings=settings))) == Code.INVALID_CONFIG


@feature("change a setting to a bad value", "change_settings")
def test_change_to_bad_value(client: Client, topic: str) -> None:
    assert code_of(lambda: client.change_settings(topic, {"segment.bytes": "-5"})) == Code.INVALID_CONFIG


@feature("replace settings with a bad value", "replace_settings")
def test_replace_with_bad_value(client: Client, topic: str) -> None:
    assert code_of(lambda: client.replace_settings(topic, {"segment.bytes": "-5"})) == Code.INVALID_CONFIG


@feature("change a setting of an unknown topic", "change_settings")
def test_change_unknown_topic(client: Client, name: str) -> None:
    act = lambda: client.change_settings(name, {"retention.ms": "1"})  # noqa: E731
    assert code_of(act) == Code.UNKNOWN_TOPIC_OR_PARTITION


@feature("describe an unknown topic, which does not create it", "describe_topic", "describing creates nothing")
def test_describe_unknown(client: Client, name: str) -> None:
    assert code_of(lambda: client.describe_topic(name)) == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert name not in client.list_topics()


@feature("delete an unknown topic", "delete_topic")
def test_delete_unknown(client: Client, name: str) -> None:
    assert code_of(lambda: client.delete_topic(name)) == Code.UNKNOWN_TOPIC_OR_PARTITION


@feature("read an unknown topic", "reader", "error when topic is unknown")
def test_read_unknown(client: Client, name: str) -> None:
    assert code_of(lambda: client.consume(name, 1)) == Code.UNKNOWN_TOPIC_OR_PARTITION


@feature("fewer partitions than there are", "create_partitions")
def test_fewer_partitions(client: Client, topic: str) -> None:
    assert code_of(lambda: client.create_partitions(topic, 1)) == Code.INVALID_PARTITIONS


@feature("partitions for an unknown topic", "create_partitions")
def test_partitions_of_unknown(client: Client, name: str) -> None:
    assert code_of(lambda: client.create_partitions(name, 4)) == Code.UNKNOWN_TOPIC_OR_PARTITION


@feature("delete records past the end", "delete_records")
def test_delete_past_the_end(client: Client, topic: str) -> None:
    assert code_of(lambda: client.delete_records(topic, 10)) == Code.OFFSET_OUT_OF_RANGE


@feature("a batch one byte over max.message.bytes; smaller ones go on", "produce")
def test_too_large(client: Client, topic: str) -> None:
    value = bytes(DEFAULT_MAX_BATCH_BYTES - BATCH_OVERHEAD_BYTES + 1)
    too_large = code_of(lambda: client.produce(topic, [Message(value=value)], Sending(max_bytes=4_000_000)))
    assert too_large == Code.MESSAGE_TOO_LARGE
    client.produce(topic, [Message(value=b"small")])
    assert client.consume(topic, 1)[0].value == b"small"


@feature("a timestamp too far in the future", "produce", "timestamps")
def test_future(client: Client, topic: str) -> None:
    tomorrow_ms = time.time_ns() // 1_000_000 + 86_400_000
    act = lambda: client.produce(topic, [Message(value=b"v", timestamp_ms=tomorrow_ms)])  # noqa: E731
    assert code_of(act) == Code.INVALID_TIMESTAMP
