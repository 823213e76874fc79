"""Topics are created, listed, described, grown and deleted."""

from tests.interop.client import Client
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.messages import Message
from tests.interop.shapes import TopicPlan


@feature("create a topic with partitions; it is listed and described", "create_topic", "list_topics", "describe_topic")
def test_create(client: Client, name: str) -> None:
    client.create_topic(name, TopicPlan(partitions=3))
    eventually(lambda: name in client.list_topics())
    shape = client.describe_topic(name)
    assert shape.partitions == (0, 1, 2)
    assert all(leader >= 0 for leader in shape.leaders)
    assert shape.replicas == shape.in_sync == tuple((leader,) for leader in shape.leaders)


@feature("list and describe a topic that another client made", "list_topics", "describe_topic")
def test_list(client: Client, topic: str, bench: Client) -> None:
    assert topic in client.list_topics()
    assert client.describe_topic(topic).leaders == bench.describe_topic(topic).leaders


@feature("create a topic with settings of its own", "create_topic", "topic_settings")
def test_create_with_settings(client: Client, name: str) -> None:
    client.create_topic(name, TopicPlan(settings={"retention.ms": "3600000", "max.message.bytes": "2000000"}))
    eventually(lambda: name in client.list_topics())
    settings = client.topic_settings(name)
    assert (settings["retention.ms"].value, settings["retention.ms"].own) == ("3600000", True)
    assert (settings["max.message.bytes"].value, settings["max.message.bytes"].own) == ("2000000", True)
    assert not settings["segment.bytes"].own


@feature("create a topic with named replicas", "create_assigned", "describe_cluster", "describe_topic")
def test_create_assigned(client: Client, name: str) -> None:
    broker = client.describe_cluster().brokers[0][0]
    client.create_assigned(name, [[broker], [broker]])
    eventually(lambda: name in client.list_topics())
    assert client.describe_topic(name).replicas == ((broker,), (broker,))


@feature("create with the broker's default number of partitions", "create_topic", "describe_topic", "default counts")
def test_create_with_defaults(client: Client, name: str) -> None:
    client.create_topic(name, TopicPlan(partitions=-1, replication=-1))
    eventually(lambda: name in client.list_topics())
    assert client.describe_topic(name).partitions[0] == 0


@feature("create for validation only: nothing is created", "create_topic", "list_topics")
def test_create_validate_only(client: Client, name: str) -> None:
    client.create_topic(name, validate_only=True)
    assert name not in client.list_topics()
    client.create_topic(name)


@feature("delete a topic; its name is free again, its messages are gone", "create_topic", "delete_topic", "watermarks")
def test_delete(client: Client, topic: str, bench: Client) -> None:
    bench.produce(topic, [Message(value=b"of the first life")])
    client.delete_topic(topic)
    eventually(lambda: topic not in client.list_topics())
    client.create_topic(topic)
    eventually(lambda: topic in client.list_topics())
    assert client.watermarks(topic) == (0, 0)


@feature("delete a topic by its id", "delete_topic_by_id")
def test_delete_by_id(client: Client, topic: str) -> None:
    topic_id = client.describe_topic(topic).topic_id
    assert topic_id is not None
    client.delete_topic_by_id(topic_id)
    eventually(lambda: topic not in client.list_topics())


@feature("topic ids: never zero, another one for a topic made again", "topic ids", "create_topic", "delete_topic")
def test_topic_ids(client: Client, topic: str) -> None:
    first = client.describe_topic(topic).topic_id
    assert first is not None
    assert first.strip("0-") not in ("", "A" * 22)
    client.delete_topic(topic)
    eventually(lambda: topic not in client.list_topics())
    client.create_topic(topic)
    eventually(lambda: topic in client.list_topics())
    assert client.describe_topic(topic).topic_id not in (first, None)


@feature("describe a topic by its id", "describe_topic_by_id", "describe_topic")
def test_describe_by_id(client: Client, topic: str) -> None:
    topic_id = client.describe_topic(topic).topic_id
    assert topic_id is not None
    assert client.describe_topic_by_id(topic_id) == topic


@feature("describe partitions page by page (DescribeTopicPartitions)", "describe_pages", "create_topic")
def test_describe_pages(client: Client, name: str) -> None:
    names = [f"{name}-a", f"{name}-b"]
    for one in names:
        client.create_topic(one, TopicPlan(partitions=3))
    eventually(lambda: set(names) <= set(client.list_topics()))
    assert client.describe_pages(names, page=2) == [(one, partition) for one in names for partition in range(3)]


@feature("add partitions and write to the new ones", "create_partitions", "describe_topic", "produce")
def test_create_partitions(client: Client, topic: str, bench: Client) -> None:
    client.create_partitions(topic, 3)
    eventually(lambda: client.describe_topic(topic).partitions == (0, 1, 2))
    client.produce(topic, [Message(value=b"in the third")], partition=2)
    assert bench.consume(topic, 1, partition=2)[0].value == b"in the third"


@feature("add partitions for validation only: none are added", "create_partitions", "describe_topic")
def test_create_partitions_validate_only(client: Client, topic: str) -> None:
    client.create_partitions(topic, 3, validate_only=True)
    assert client.describe_topic(topic).partitions == (0,)


@feature("produce to a topic that does not exist yet: it is created", "produce")
def test_auto_create(client: Client, name: str, bench: Client) -> None:
    client.produce(name, [Message(value=b"first")])
    (received,) = bench.consume(name, 1)
    assert (received.offset, received.value) == (0, b"first")
