"""`tailrace group`: output for people and for scripts."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import Consumer

from tailrace.testing import Broker
from tests.unit.cli.program import Program


@pytest.fixture
def read(tailrace: Program, topic: str, broker: Broker) -> str:
    """A topic with six messages, four of which group `topic` has committed."""
    tailrace("topic", "create", topic)
    tailrace("produce", topic, stdin="a\nb\nc\nd\ne\nf\n")
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got = consumer.consume(4, timeout=30)
    assert [one.value() for one in got] == [b"a", b"b", b"c", b"d"]
    (row,) = described(tailrace, topic)["members"]
    assert (row["client"], row["partitions"]) == ("rdkafka", [f"{topic}-0"])
    consumer.commit(message=got[-1], asynchronous=False)
    consumer.close()
    return topic


def described(tailrace: Program, group: str) -> Any:
    (facts,) = json.loads(tailrace("group", "describe", group, "--json").out)
    return facts


def test_a_group_is_listed_described_and_deleted(tailrace: Program, read: str) -> None:
    assert read in tailrace("group", "list").out.splitlines()
    assert {"group": read, "type": "classic", "state": "empty"} in json.loads(tailrace("group", "list", "--json").out)
    facts = described(tailrace, read)
    assert (facts["state"], facts["members"]) == ("empty", [])
    assert facts["offsets"] == [{"topic": read, "partition": 0, "committed": 4, "end": 6, "lag": 2, "owner": None}]
    shown = tailrace("group", "describe", read).out.splitlines()
    assert shown[0] == f"{read}  classic, empty, coordinated by broker 1"
    assert [read, "0", "4", "6", "2", "-"] in [line.split() for line in shown]
    gone = tailrace("group", "delete", read)
    assert (gone.code, gone.err) == (0, f"deleted {read}\n")
    assert read not in tailrace("group", "list").out.splitlines()
    again = tailrace("group", "delete", read)
    assert again.code == 1
    assert "GROUP_ID_NOT_FOUND" in again.err


def test_a_reset_is_shown_and_with_execute_committed(tailrace: Program, read: str) -> None:
    shown = tailrace("group", "reset-offsets", read, "--to-earliest")
    assert shown.code == 0
    assert shown.err == "nothing was changed; add --execute to commit these offsets\n"
    assert [read, "0", "4", "0"] in [line.split() for line in shown.out.splitlines()]
    assert described(tailrace, read)["offsets"][0]["committed"] == 4
    for words, after in (
        (("--to-earliest",), 0),
        (("--to-latest",), 6),
        (("--to-offset", "5"), 5),
        (("--to-offset", "99"), 6),
        (("--back", "1h"), 0),
        (("--back", "99999999999999d"), 0),
        (("--to-time", "1969-12-31T23:59:59.999+00:00"), 0),  # timestamps -1 and -2 mean end and start
        (("--to-time", "0001-01-01T00:00:00"), 0),
        (("--to-time", "0001-01-01T00:00:00+14:00"), 0),
        (("--to-time", time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 3600))), 6),
    ):
        done = tailrace("group", "reset-offsets", read, *words, "--execute", "--json")
        assert json.loads(done.out)[0]["after"] == after, words
        assert described(tailrace, read)["offsets"][0]["committed"] == after


def test_the_offsets_of_a_new_group_can_be_set(tailrace: Program, read: str) -> None:
    fresh = f"{read}-fresh"
    assert tailrace("group", "reset-offsets", fresh, "--to-offset", "2").code == 1
    done = tailrace("group", "reset-offsets", fresh, "--topic", read, "--to-offset", "2", "--execute")
    assert (done.code, done.err) == (0, f"reset {fresh}\n")
    assert described(tailrace, fresh)["offsets"][0]["committed"] == 2


def test_a_topic_that_is_named_twice_is_reset_once(tailrace: Program, read: str) -> None:
    shown = tailrace("group", "reset-offsets", read, "--topic", read, "--topic", read, "--to-latest", "--json")
    assert json.loads(shown.out) == [{"topic": read, "partition": 0, "before": 4, "after": 6}]


def test_a_reset_does_not_create_a_missing_topic(tailrace: Program, topic: str) -> None:
    for words in ((), ("--execute",)):
        shown = tailrace("group", "reset-offsets", "anybody", "--topic", topic, "--to-latest", *words)
        assert (shown.code, shown.out) == (1, "")
        assert f"cannot find topic {topic}: Unknown topic or partition" in shown.err
        assert topic not in tailrace("topic", "list").out.splitlines()


def test_a_missing_group(tailrace: Program) -> None:
    shown = tailrace("group", "describe", "missing")
    assert shown.code == 1
    assert (shown.out, "there is no group missing" in shown.err) == ("", True)


def test_existing_groups_are_shown_along_with_a_missing_one(tailrace: Program, read: str) -> None:
    for words in (("missing", read), (read, "missing")):
        shown = tailrace("group", "describe", *words, "--json")
        assert (shown.code, [one["group"] for one in json.loads(shown.out)]) == (1, [read])
        assert "there is no group missing" in shown.err
        assert tailrace("group", "describe", *words).out.startswith(f"{read}  classic, empty")


def test_invalid_reset_targets(tailrace: Program, read: str) -> None:
    for words in ((), ("--to-earliest", "--to-latest"), ("--back", "soon"), ("--to-time", "yesterday")):
        assert tailrace("group", "reset-offsets", read, *words).code == 2
    endless = tailrace("group", "reset-offsets", read, "--back", "9" * 5000 + "d")
    assert (endless.code, "Traceback" in endless.err) == (2, False)


def test_the_type_of_a_consumer_group_is_shown(tailrace: Program, topic: str, broker: Broker) -> None:
    tailrace("topic", "create", topic)
    tailrace("produce", topic, stdin="a\n")
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "group.protocol": "consumer"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert [one.value() for one in consumer.consume(1, timeout=30)] == [b"a"]
    assert {"group": topic, "type": "consumer", "state": "stable"} in json.loads(
        tailrace("group", "list", "--json").out
    )
    facts = described(tailrace, topic)
    assert (facts["type"], facts["assignor"]) == ("consumer", "uniform")
    assert [row["partitions"] for row in facts["members"]] == [[f"{topic}-0"]]
    consumer.close()


def test_assigned_partitions_without_a_committed_offset_are_shown(
    tailrace: Program, topic: str, broker: Broker
) -> None:
    tailrace("topic", "create", topic, "--partitions", "2")
    tailrace("produce", topic, "--partition", "1", stdin="a\nb\nc\n")
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got = consumer.consume(3, timeout=30)
    facts = described(tailrace, topic)
    (owner,) = (one["member"] for one in facts["members"])
    row = {"topic": topic, "committed": None, "lag": None, "owner": owner}
    assert facts["offsets"] == [row | {"partition": 0, "end": 0}, row | {"partition": 1, "end": 3}]
    consumer.commit(message=got[1], asynchronous=False)
    shown = [line.split() for line in tailrace("group", "describe", topic).out.splitlines()]
    assert [topic, "0", "-", "0", "-", owner] in shown
    assert [topic, "1", "2", "3", "1", owner] in shown
    consumer.close()
    assert [row["partition"] for row in described(tailrace, topic)["offsets"]] == [1]
