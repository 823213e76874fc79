"""Kafka's own command-line tools: what people type today works here."""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from tailrace.cluster.features import NEWEST_LEVEL
from tailrace.model.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.interop.client import Client
from tests.interop.drivers.kafka_tools import KafkaTools, ToolFailed
from tests.interop.feature import feature
from tests.interop.member import soon
from tests.interop.messages import Message
from tests.interop.test_groups import PARTITIONS, everything, fill
from tests.interop.test_groups import group as group
from tests.interop.test_groups import topic as topic
from tests.interop.test_settings import OF_A_TABLE


def rows(printed: str) -> list[list[str]]:
    """Lines of a table, as words."""
    return [line.split() for line in printed.splitlines() if line.strip()]


@feature("kafka-topics: create, list, describe, alter, delete", "command line")
def test_topics(client: KafkaTools, name: str) -> None:
    settings = ("--config", "retention.ms=1000", "--config", "cleanup.policy=compact,delete")
    client.run("topics", "--create", "--topic", name, "--partitions", "2", *settings)
    assert name in client.run("topics", "--list").split()
    client.run("topics", "--alter", "--topic", name, "--partitions", "3")
    described = client.run("topics", "--describe", "--topic", name)
    assert "PartitionCount: 3" in described
    assert "retention.ms=1000" in described
    assert described.count("Leader: ") == 3
    with pytest.raises(ToolFailed, match="TopicExistsException"):
        client.run("topics", "--create", "--topic", name)
    client.run("topics", "--delete", "--topic", name)
    assert name not in client.run("topics", "--list").split()


@feature("kafka-configs: set, show and unset a topic's setting", "command line")
def test_configs(client: KafkaTools, topic: str) -> None:
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    client.run("configs", *of_topic, "--alter", "--add-config", "max.message.bytes=2000000")
    assert "max.message.bytes=2000000" in client.run("configs", *of_topic, "--describe")
    client.run("configs", *of_topic, "--alter", "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in client.run("configs", *of_topic, "--describe")


@feature("kafka-topics and kafka-configs: all settings of a compacted topic", "command line")
def test_compacted_topic(client: KafkaTools, name: str) -> None:
    pairs = [f"{setting}={value}" for setting, value in OF_A_TABLE.items()]
    client.run("topics", "--create", "--topic", name, *(word for pair in pairs for word in ("--config", pair)))
    of_topic = ("--entity-type", "topics", "--entity-name", name)
    described = client.run("configs", *of_topic, "--describe")
    assert [pair for pair in pairs if f" {pair} " not in described] == []
    both = [pair.replace("=compact", "=[compact,delete]") for pair in pairs]
    client.run("configs", *of_topic, "--alter", "--add-config", ",".join(both))
    assert " cleanup.policy=compact,delete " in client.run("configs", *of_topic, "--describe")
    client.run("configs", *of_topic, "--alter", "--delete-config", ",".join(OF_A_TABLE))
    assert "cleanup.policy" not in client.run("configs", *of_topic, "--describe")


@feature("kafka-configs: how all brokers compact, and one of them", "command line")
def test_compaction_of_brokers(client: KafkaTools, bench: Client) -> None:
    pairs = ["log.cleaner.threads=2", "log.cleaner.backoff.ms=1000", "log.cleaner.dedupe.buffer.size=33554432"]
    pairs += ["log.cleaner.io.max.bytes.per.second=1.0E7", "log.cleaner.min.cleanable.ratio=0.1"]
    names = ",".join(pair.partition("=")[0] for pair in pairs)
    for whose in (["--entity-default"], ["--entity-name", str(bench.describe_cluster().controller)]):
        of_broker = ("--entity-type", "brokers", *whose)
        client.run("configs", *of_broker, "--alter", "--add-config", ",".join(pairs))
        described = client.run("configs", *of_broker, "--describe")
        assert [pair for pair in pairs if pair.partition("=")[0] not in described] == []
        client.run("configs", *of_broker, "--alter", "--delete-config", names)
        assert "log.cleaner" not in client.run("configs", *of_broker, "--describe")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@feature("kafka-console-producer and kafka-console-consumer, in a group of protocol {protocol}", "command line")
def test_console(client: KafkaTools, protocol: str, topic: str, group: str, bench: Client) -> None:
    properties = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    client.run("console-producer", "--topic", topic, *properties, given="a:1\nb:2\nc:3\n")
    assert sum(bench.watermarks(topic, one)[1] for one in everything) == 3
    reading = ("--topic", topic, "--group", group, "--from-beginning", "--formatter-property", "print.key=true")
    told = ("--command-property", f"group.protocol={protocol}")
    read = client.run("console-consumer", *reading, *told, "--max-messages", "3")
    assert sorted(rows(read)) == [["a", "1"], ["b", "2"], ["c", "3"]]
    assert sum(bench.committed(group, topic).values()) == 3


@feature(
    "kafka-console-consumer reads __consumer_offsets and __transaction_state, by Kafka's own formatters", "command line"
)
def test_own_topics(client: KafkaTools, topic: str, group: str, bench: Client) -> None:
    with bench.transactor(group) as producer:
        producer.begin()
        producer.write(topic, b"v", partition=1)
        producer.commit()
    bench.commit(group, topic, {2: 7})
    kept = {"topic": topic, "partition": 2, "group": group}
    offsets = formatted(client, OFFSETS_TOPIC, "OffsetsMessageFormatter", of=group)
    assert [(one["key"]["data"], one["value"]["data"]["offset"]) for one in offsets] == [(kept, 7)]
    states = formatted(client, TRANSACTIONS_TOPIC, "TransactionLogMessageFormatter", of=group)
    assert {one["key"]["data"]["transactionalId"] for one in states} == {group}
    ongoing = [one["value"]["data"] for one in states if one["value"]["data"]["transactionPartitions"]]
    assert ongoing[0]["transactionPartitions"] == [{"topic": topic, "partitionIds": [1]}]


def formatted(client: KafkaTools, topic: str, formatter: str, of: str) -> list[Any]:
    """The records of a topic that name a group or a transaction."""
    reading = ("--topic", topic, "--from-beginning", "--timeout-ms", "5000")
    printed = client.run("console-consumer", *reading, "--formatter", f"org.apache.kafka.tools.consumer.{formatter}")
    lines = printed.replace('}{"key"', '}\n{"key"').splitlines()  # it ends no line itself
    return [json.loads(line) for line in lines if of in line]


@feature("kafka-get-offsets: the first, the next, at a time, of the newest record", "command line")
def test_get_offsets(client: KafkaTools, topic: str, bench: Client) -> None:
    bench.produce(topic, [Message(value=b"v", timestamp_ms=1000 + number) for number in range(10)], partition=1)
    bench.delete_records(topic, 2, partition=1)
    for time, expected in (("earliest", 2), ("latest", 10), ("1005", 5), ("max-timestamp", 9)):
        printed = client.run("get-offsets", "--topic-partitions", f"{topic}:1", "--time", time)
        assert printed.split() == [f"{topic}:1:{expected}"]


@feature("kafka-consumer-groups: list, describe, members and state, while there are some", "command line")
def test_describe_groups(client: KafkaTools, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 5)
    with bench.member(topic, group) as member:
        soon(lambda: len(member.got) == 5 * PARTITIONS)
        soon(lambda: bench.committed(group, topic) == dict.fromkeys(everything, 5))
        listed = client.run("consumer-groups", "--list", "--state", "--type")
        assert [group, "Classic", "Stable"] in rows(listed)
        assert group in client.run("groups", "--list")
        described = rows(client.run("consumer-groups", "--describe", "--group", group))
        assert [row[:6] for row in described if row[0] == group] == [
            [group, topic, str(partition), "5", "5", "0"] for partition in range(PARTITIONS)
        ]
        members = client.run("consumer-groups", "--describe", "--group", group, "--members", "--verbose")
        assert f"{topic}:0,1,2,3" in members or f"{topic}(0,1,2,3)" in members, members
        state = client.run("consumer-groups", "--describe", "--group", group, "--state")
        assert "range" in state
        assert "Stable" in state


@feature("kafka-consumer-groups: reset-offsets, delete-offsets, delete", "command line")
def test_change_groups(client: KafkaTools, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    bench.commit(group, topic, dict.fromkeys(everything, 7))
    reset = ("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic)
    assert len(re.findall(r"\b0\n", client.run(*reset, "--to-earliest", "--dry-run"))) == PARTITIONS
    assert bench.committed(group, topic) == dict.fromkeys(everything, 7)
    client.run(*reset, "--shift-by", "-2", "--execute")
    assert bench.committed(group, topic) == dict.fromkeys(everything, 5)
    client.run(*reset, "--to-datetime", "2000-01-01T00:00:00.000", "--execute")
    assert bench.committed(group, topic) == dict.fromkeys(everything, 0)
    client.run("consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{topic}:0,1")
    assert sorted(bench.committed(group, topic)) == [2, 3]
    client.run("consumer-groups", "--delete", "--group", group)
    assert group not in bench.list_groups()


@feature("kafka-transactions: list, describe, describe-producers, find-hanging, abort", "command line")
def test_transactions(client: KafkaTools, topic: str, bench: Client) -> None:
    name = f"transaction-{uuid.uuid4().hex[:12]}"
    with bench.transactor(name) as producer:
        producer.begin()
        producer.write(topic, b"open", partition=1)
        listed = [row for row in rows(client.run("transactions", "list")) if row[0] == name]
        assert [row[-1] for row in listed] == ["Ongoing"]
        described = client.run("transactions", "describe", "--transactional-id", name)
        assert "Ongoing" in described
        assert f"{topic}-1" in described
        partition = ("--topic", topic, "--partition", "1")
        (producing,) = rows(client.run("transactions", "describe-producers", *partition))[1:]
        assert producing[-1] == "0"  # where the transaction began
        assert topic not in client.run("transactions", "find-hanging", "--topic", topic)
        client.run("transactions", "abort", *partition, "--start-offset", "0")
        (after,) = rows(client.run("transactions", "describe-producers", *partition))[1:]
        assert after[-1] == "None"


@feature("kafka-delete-records", "command line")
def test_delete_records(client: KafkaTools, topic: str, bench: Client, tmp_path: Path) -> None:
    fill(bench, topic, 10)
    wanted = {"partitions": [{"topic": topic, "partition": 2, "offset": 4}], "version": 1}
    (tmp_path / "records.json").write_text(json.dumps(wanted))
    client.run("delete-records", "--offset-json-file", str(tmp_path / "records.json"))
    assert bench.watermarks(topic, 2) == (4, 10)


@feature(
    "kafka-cluster, kafka-metadata-quorum, kafka-log-dirs, kafka-features, kafka-broker-api-versions", "command line"
)
def test_cluster(client: KafkaTools, topic: str, bench: Client) -> None:
    cluster = bench.describe_cluster().cluster_id
    assert cluster in client.run("cluster", "cluster-id", "--bootstrap-server", client.bootstrap)
    assert cluster in client.run("metadata-quorum", "describe", "--status")
    assert f"{topic}-3" in client.run("log-dirs", "--describe", "--topic-list", topic)
    assert "transaction.version" in client.run("features", "describe")
    newest = f"metadata.version={NEWEST_LEVEL}"
    assert f"can be upgraded to {NEWEST_LEVEL}" in client.run("features", "upgrade", "--feature", newest, "--dry-run")
    with pytest.raises(ToolFailed, match="a raise cannot be undone"):
        client.run("features", "downgrade", "--feature", f"metadata.version={NEWEST_LEVEL - 1}", "--unsafe")
    assert "Produce(0): 0 to 13 [usable: 13]" in client.run("broker-api-versions")


@feature("kafka-producer-perf-test and kafka-consumer-perf-test", "command line")
def test_performance(client: KafkaTools, topic: str) -> None:
    size = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    assert "20000 records sent" in client.run("producer-perf-test", "--topic", topic, *size)
    read = client.run("consumer-perf-test", "--topic", topic, "--num-records", "20000", "--timeout", "10000")
    assert read.splitlines()[-1].split(", ")[4] == "20000"
