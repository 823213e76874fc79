"""`tailrace transaction`: output for people and for scripts."""

import json
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from tailrace.testing import Broker
from tests.unit.cli.program import Program


@pytest.fixture
def open_one(tailrace: Program, topic: str, broker: Broker) -> Producer:
    """A producer with an open transaction of one message; the transactional id is the topic's name."""
    tailrace("topic", "create", topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"v")
    assert producer.flush(30) == 0
    return producer


def described(tailrace: Program, name: str) -> Any:
    (facts,) = json.loads(tailrace("transaction", "describe", name, "--json").out)
    return facts


def test_a_transaction_is_listed_described_and_aborted(tailrace: Program, topic: str, open_one: Producer) -> None:
    facts = described(tailrace, topic)
    assert (facts["state"], facts["partitions"], facts["coordinator"]) == ("Ongoing", [f"{topic}-0"], 1)
    assert (facts["timeout_ms"], facts["open_ms"] >= 0) == (60_000, True)
    shown = tailrace("transaction", "describe", topic).out.splitlines()
    assert shown[0] == f"{topic}  Ongoing, producer {facts['producer_id']} in epoch 0, coordinated by broker 1"
    listed = json.loads(tailrace("transaction", "list", "--state", "Ongoing", "--json").out)
    assert {"transaction": topic, "state": "Ongoing", "producer_id": facts["producer_id"]} in listed
    assert [topic, "Ongoing"] in [line.split()[:2] for line in tailrace("transaction", "list").out.splitlines()]
    aborted = tailrace("transaction", "abort", topic)
    assert (aborted.code, aborted.err) == (0, f"aborted {topic}\n")
    assert described(tailrace, topic)["open_ms"] is None
    assert topic not in [
        one["transaction"] for one in json.loads(tailrace("transaction", "list", "-s", "Ongoing", "--json").out)
    ]
    with pytest.raises(KafkaException, match="fenced"):
        open_one.commit_transaction(30)
    again = tailrace("transaction", "abort", topic)
    assert (again.code, again.err) == (0, f"fenced {topic}, which had no open transaction (Empty)\n")


def test_a_missing_transactional_id_and_an_unknown_state(tailrace: Program) -> None:
    for words in (("describe", "missing"), ("abort", "missing")):
        shown = tailrace("transaction", *words)
        assert shown.code == 1
        assert "there is no transactional id missing" in shown.err
    asleep = tailrace("transaction", "list", "--state", "Asleep")
    assert asleep.code == 1
    assert "--state Asleep: there is no such state" in asleep.err


def test_existing_transactions_are_shown_along_with_a_missing_one(
    tailrace: Program, topic: str, open_one: Producer
) -> None:
    for words in (("missing", topic), (topic, "missing")):
        shown = tailrace("transaction", "describe", *words, "--json")
        assert (shown.code, [one["transaction"] for one in json.loads(shown.out)]) == (1, [topic])
        assert "there is no transactional id missing" in shown.err
        assert tailrace("transaction", "describe", *words).out.startswith(f"{topic}  Ongoing")
    open_one.abort_transaction(30)


def test_no_broker(tailrace: Program) -> None:
    for bootstrap, code in (("127.0.0.1:1", 1), ("nonsense", 2)):
        shown = tailrace("transaction", "list", "--bootstrap", bootstrap)
        assert shown.code == code
        assert bootstrap in shown.err
