"""`tailrace bench`: its output; performance itself is measured by `benchmarks/`."""

import json
import signal
import time

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tailrace.cli.bench.latency import percentiles
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, Program, start_tailrace


def test_figures_for_scripts(tailrace: Program) -> None:
    ran = tailrace("bench", "--messages", "2000", "--size", "100", "--rate", "200", "--seconds", "0.5", "--json")
    assert ran.code == 0, ran.err
    produced, consumed, latency = map(json.loads, ran.out.splitlines())
    assert (produced["name"], produced["messages"], produced["size"]) == ("produce", 2000, 100)
    assert produced["messages_per_s"] == pytest.approx(2000 / produced["seconds"], rel=0.05)
    assert consumed["name"] == "consume"
    assert latency["messages"] == 100
    assert 0 < latency["confirmed_ms"]["p50"] <= latency["confirmed_ms"]["p99"] <= latency["confirmed_ms"]["max"]
    assert "bench" not in tailrace("topic", "list").out  # its topic was deleted


def test_a_table_for_people(tailrace: Program) -> None:
    ran = tailrace("bench", "--messages", "500", "--only", "produce", "--only", "consume", "--partitions", "2")
    assert ran.code == 0, ran.err
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith(" ") and line.split()][-2:] == [
        "produce",
        "consume",
    ]


@pytest.mark.parametrize("only", ["produce", "latency"])
def test_ctrl_c_deletes_the_topic(broker: Broker, only: str) -> None:
    process = start_tailrace(
        "bench", "--messages", "100000000", "--seconds", "1000", "--only", only, TAILRACE_BOOTSTRAP=broker.bootstrap
    )
    looking = {"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False}
    client = Consumer(looking)  # unlike other clients, a consumer never creates a topic
    deadline = time.monotonic() + DEADLINE_S
    try:
        while not filled(client):
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert (process.returncode, errors) == (130, "")
    assert list(client.list_topics(timeout=DEADLINE_S).topics) in (
        [],
        [OFFSETS_TOPIC],
    )  # created when it looked for a coordinator
    client.close()


def filled(client: Consumer) -> bool:
    """Whether the topic of the bench has any message."""
    try:
        topics = [name for name in client.list_topics(timeout=DEADLINE_S).topics if name != OFFSETS_TOPIC]
        return any(client.get_watermark_offsets(TopicPartition(name, 0), timeout=1)[1] > 1 for name in topics)
    except KafkaException:  # the topic is being created
        return False


def test_a_missing_topic_is_not_created(tailrace: Program) -> None:
    ran = tailrace("bench", "--topic", "nope", "--only", "produce", "--messages", "10")
    assert ran.code == 1
    assert "no topic nope" in ran.err
    assert "nope" not in tailrace("topic", "list").out


def test_percentiles() -> None:
    assert percentiles([float(n) for n in range(1, 1001)]) == {
        "p50": 501.0,
        "p99": 991.0,
        "p999": 1000.0,
        "max": 1000.0,
    }
    assert percentiles([7.0]) == {"p50": 7.0, "p99": 7.0, "p999": 7.0, "max": 7.0}
