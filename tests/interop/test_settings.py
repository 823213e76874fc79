"""Settings of topics and brokers are shown and changed, and a change takes effect."""

from tests.interop.client import Client, Code, Refused
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.messages import Message
from tests.interop.shapes import TopicPlan

HOUR_MS, DAY_MS = "3600000", "86400000"
# What a table in a topic is given: by Kafka Streams and Connect, by schema registries, and by their administrators.
OF_A_TABLE = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    "delete.retention.ms": "100",
    "max.compaction.lag.ms": HOUR_MS,
    "max.message.bytes": "8388608",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "1000",
    "min.insync.replicas": "1",
    "retention.ms": "-1",
    "segment.bytes": "1048576",
    "segment.index.bytes": "52428800",
    "segment.jitter.ms": "500",
    "segment.ms": "100",
    "unclean.leader.election.enable": "false",
}


def own(client: Client, topic: str) -> dict[str, str | None]:
    return {name: setting.value for name, setting in client.topic_settings(topic).items() if setting.own}


@feature("show a topic's settings with their defaults", "topic_settings")
def test_topic_settings(client: Client, topic: str) -> None:
    settings = client.topic_settings(topic)
    expected = {"cleanup.policy": "delete", "compression.type": "producer", "message.timestamp.type": "CreateTime"}
    assert {name: settings[name].value for name in expected} == expected
    assert own(client, topic) == {}


@feature("show a broker's settings", "broker_settings", "describe_cluster")
def test_broker_settings(client: Client) -> None:
    broker = client.describe_cluster().controller
    settings = client.broker_settings(broker)
    assert settings["num.partitions"].value is not None
    assert settings["message.max.bytes"].value is not None
    assert settings["node.id"].value == str(broker)
    addresses = {id: f"{host}:{port}" for id, host, port in client.describe_cluster().brokers}
    assert f"PLAINTEXT://{addresses[broker]}" in (settings["advertised.listeners"].value or "").split(",")
    assert settings["log.dir"].value


@feature("change some settings, the others stay (IncrementalAlterConfigs)", "change_settings", "topic_settings")
def test_change(client: Client, topic: str) -> None:
    client.change_settings(topic, {"retention.ms": HOUR_MS, "segment.bytes": "2000000"})
    client.change_settings(topic, {"retention.ms": DAY_MS})
    eventually(lambda: own(client, topic) == {"retention.ms": DAY_MS, "segment.bytes": "2000000"})


@feature("make a compacted topic with all that Kafka has for one", "create_topic", "topic_settings")
def test_compacted(client: Client, name: str) -> None:
    client.create_topic(name, TopicPlan(settings=OF_A_TABLE))
    eventually(lambda: name in client.list_topics())
    assert own(client, name) == OF_A_TABLE


@feature("make a compacted topic of one that is not, setting by setting, and back", "change_settings", "topic_settings")
def test_change_to_compacted(client: Client, topic: str) -> None:
    for setting, value in OF_A_TABLE.items():
        client.change_settings(topic, {setting: value})
    eventually(lambda: own(client, topic) == OF_A_TABLE)
    client.change_settings(topic, {"cleanup.policy": "compact,delete"})
    eventually(lambda: own(client, topic) == OF_A_TABLE | {"cleanup.policy": "compact,delete"})
    client.change_settings(topic, dict.fromkeys(OF_A_TABLE))
    eventually(lambda: own(client, topic) == {})


@feature("set a setting back to its default (IncrementalAlterConfigs)", "change_settings", "topic_settings")
def test_back_to_default(client: Client, topic: str) -> None:
    before = client.topic_settings(topic)["retention.ms"]
    client.change_settings(topic, {"retention.ms": HOUR_MS})
    client.change_settings(topic, {"retention.ms": None})
    eventually(lambda: client.topic_settings(topic)["retention.ms"] == before)


@feature("change for validation only: nothing changes", "change_settings", "topic_settings")
def test_change_validate_only(client: Client, topic: str) -> None:
    client.change_settings(topic, {"retention.ms": HOUR_MS}, validate_only=True)
    assert own(client, topic) == {}


@feature("replace all settings (AlterConfigs)", "replace_settings", "topic_settings")
def test_replace(client: Client, name: str, bench: Client) -> None:
    bench.create_topic(name, TopicPlan(settings={"retention.ms": HOUR_MS}))
    eventually(lambda: name in bench.list_topics())
    assert own(bench, name) == {"retention.ms": HOUR_MS}
    client.replace_settings(name, {"retention.ms": DAY_MS, "segment.bytes": "2000000"})
    eventually(lambda: own(client, name) == {"retention.ms": DAY_MS, "segment.bytes": "2000000"})


@feature("a smaller max.message.bytes refuses what went before", "change_settings", "produce")
def test_change_takes_effect(client: Client, topic: str) -> None:
    message = Message(value=bytes(20_000))
    client.produce(topic, [message])
    client.change_settings(topic, {"max.message.bytes": "10000"})
    eventually(lambda: own(client, topic) == {"max.message.bytes": "10000"})
    eventually(lambda: refused_with(client, topic, message) == Code.MESSAGE_TOO_LARGE)


def refused_with(client: Client, topic: str, message: Message) -> int | None:
    """The error code; None: the leader has taken the message, as it follows the metadata a moment later than others."""
    try:
        client.produce(topic, [message])
    except Refused as refused:
        return refused.code
    return None
