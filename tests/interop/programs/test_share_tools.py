"""Kafka's own command-line tools for share groups."""

import pytest

from tailrace.model.topics import SHARE_STATE_TOPIC
from tests.interop.client import Client
from tests.interop.drivers.kafka_tools import KafkaTools, ToolFailed
from tests.interop.feature import feature
from tests.interop.programs.test_kafka_tools import formatted, rows
from tests.interop.test_share_members import fill, left, offsets
from tests.interop.test_share_members import group as group


@feature("kafka-console-share-consumer: accept, release, reject", "command line")
def test_console(client: KafkaTools, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 6)
    shown = ("--formatter-property", "print.delivery=true")
    reading = ("console-share-consumer", "--topic", topic, "--group", group, *shown)
    ended = ("--max-messages", "6", "--timeout-ms", "20000")
    assert rows(client.run(*reading, *ended, "--release")) == [["Delivery:1", str(at)] for at in range(6)]
    assert rows(client.run(*reading, *ended, "--reject")) == [["Delivery:2", str(at)] for at in range(6)]
    assert left(client.bootstrap, group, topic) == 0
    fill(bench, topic, 3)
    assert rows(client.run(*reading, "--max-messages", "3")) == [["Delivery:1", str(at)] for at in range(3)]
    assert left(client.bootstrap, group, topic) == 0


@feature("kafka-share-groups: list, describe, members and state, while there are some", "command line")
def test_describe(client: KafkaTools, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 5)
    with bench.share_member(topic, group) as member:
        member.drain(5)
        member.commit()
        assert group in client.run("share-groups", "--list").split()
        assert [group, "Stable"] in rows(client.run("share-groups", "--list", "--state"))
        assert any(row[:3] == [group, "Share", "share"] for row in rows(client.run("groups", "--list")))
        described = rows(client.run("share-groups", "--describe", "--group", group))
        assert [row[:5] for row in described if row[0] == group] == [[group, topic, "0", "5", "0"]]
        assert f"{topic}:0" in client.run("share-groups", "--describe", "--group", group, "--members", "--verbose")
        assert "Stable" in client.run("share-groups", "--describe", "--group", group, "--state")
        assert "GroupNotEmptyException" in client.run("share-groups", "--delete", "--group", group)


@feature("kafka-share-groups: reset-offsets, delete-offsets, delete", "command line")
def test_change(client: KafkaTools, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with bench.share_member(topic, group) as member:
        member.drain(10)
        member.commit()
        member.leave()
    assert left(client.bootstrap, group, topic) == 0
    reset = ("share-groups", "--reset-offsets", "--group", group, "--topic", topic)
    assert [topic, "0", "0"] in [row[-3:] for row in rows(client.run(*reset, "--to-earliest", "--dry-run"))]
    assert left(client.bootstrap, group, topic) == 0
    client.run(*reset, "--to-earliest", "--execute")
    assert left(client.bootstrap, group, topic) == 10
    client.run(*reset, "--to-latest", "--execute")
    assert left(client.bootstrap, group, topic) == 0
    client.run(*reset, "--to-datetime", "2000-01-01T00:00:00.000", "--execute")
    with bench.share_member(topic, group) as member:
        assert offsets(member.drain(10)) == list(range(10))
        member.leave()
    client.run("share-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert topic not in client.run("share-groups", "--describe", "--group", group)
    client.run("share-groups", "--delete", "--group", group)
    assert group not in client.run("share-groups", "--list").split()


@feature("kafka-configs: set, show and unset a group's setting", "command line")
def test_configs(client: KafkaTools, group: str) -> None:
    of_group = ("configs", "--entity-type", "groups", "--entity-name", group)
    lock = "share.record.lock.duration.ms"
    client.run(*of_group, "--alter", "--add-config", f"{lock}=20000")
    described = client.run(*of_group, "--describe")
    assert f"{lock}=20000" in described
    assert "share.auto.offset.reset=earliest" in described
    assert f"{lock}=20000" in client.run("configs", "--entity-type", "groups", "--describe")
    client.run(*of_group, "--alter", "--delete-config", lock)
    assert lock not in client.run(*of_group, "--describe")
    with pytest.raises(ToolFailed, match="InvalidConfigurationException"):
        client.run(*of_group, "--alter", "--add-config", "share.auto.offset.reset=sometimes")


@feature("kafka-console-consumer reads __share_group_state, by Kafka's own formatter", "command line")
def test_own_topic(client: KafkaTools, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 4)
    with bench.share_member(topic, group, "explicit") as member:
        held = member.take()
        member.acknowledge(held[1:2], "release")
        member.acknowledge(held[2:], "accept")
        member.commit()
    records = formatted(client, SHARE_STATE_TOPIC, "group.share.ShareGroupStateMessageFormatter", of=group)
    assert {(one["key"]["data"]["groupId"], one["key"]["data"]["partition"]) for one in records} == {(group, 0)}
    assert {one["value"]["data"]["startOffset"] for one in records} == {0}


@feature("kafka-share-consumer-perf-test", "command line")
def test_performance(client: KafkaTools, topic: str, group: str) -> None:
    size = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    client.run("producer-perf-test", "--topic", topic, *size)
    reading = ("--topic", topic, "--group", group, "--num-records", "20000", "--timeout", "20000")
    read = client.run("share-consumer-perf-test", *reading)
    assert read.splitlines()[-1].split(", ")[5] == "20000"
