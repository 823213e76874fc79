"""`tailrace produce` and `tailrace consume`: lines in, lines out."""

import json
import signal
import time

import pytest

from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, Program, run_tailrace, start_tailrace


def test_lines_come_out_as_they_went_in(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic)
    sent = tailrace("produce", topic, stdin="one\n\nthree, ünïcode\nno newline at the end")
    assert (sent.code, sent.out, sent.err) == (0, "", f"sent 4 messages to {topic}\n")
    read = tailrace("consume", topic, "--from-beginning", "--max", "4", "--timeout", "20")
    assert (read.code, read.out) == (0, "one\n\nthree, ünïcode\nno newline at the end\n")


def test_keys_headers_and_json(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic)
    words = ("produce", topic, "--key-separator", "::", "--header", "from=test", "--header", "n=1", "--json")
    sent = tailrace(*words, stdin="ann::3 apples\nbob::::\n")
    assert json.loads(sent.out) == {"topic": topic, "sent": 2}
    read = tailrace("consume", topic, "--from-beginning", "--to-end", "--format", "json")
    first, second = map(json.loads, read.out.splitlines())
    assert (first["key"], first["value"], first["partition"], first["offset"]) == ("ann", "3 apples", 0, 0)
    assert first["headers"] == [{"name": "from", "value": "test"}, {"name": "n", "value": "1"}]
    assert first["timestamp_type"] == "create"
    assert (second["key"], second["value"]) == ("bob", "::")
    shown = tailrace("consume", topic, "--from-beginning", "--to-end", "--key-separator", "=")
    assert shown.out == "ann=3 apples\nbob=::\n"


@pytest.mark.parametrize(("acks", "compression"), [("all", "zstd"), ("1", "lz4"), ("0", "gzip"), ("all", "snappy")])
def test_acks_and_compression(tailrace: Program, topic: str, acks: str, compression: str) -> None:
    tailrace("topic", "create", topic)
    lines = "".join(f"line {number}\n" for number in range(1000))
    assert tailrace("produce", topic, "--acks", acks, "--compression", compression, stdin=lines).code == 0
    read = tailrace("consume", topic, "--from-beginning", "--max", "1000", "--timeout", "20")
    assert read.out == lines


def test_partitions_and_offsets_to_start_at(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic, "--partitions", "3")
    for partition in "012":
        tailrace("produce", topic, "--partition", partition, stdin="".join(f"{partition}{n}\n" for n in range(4)))
    everything = tailrace("consume", topic, "--from-beginning", "--to-end").out.split()
    assert sorted(everything) == [f"{partition}{n}" for partition in "012" for n in range(4)]
    one = tailrace("consume", topic, "--partition", "1", "--offset", "2", "--to-end")
    assert one.out.split() == ["12", "13"]
    last = tailrace("consume", topic, "--offset", "-1", "--to-end")
    assert sorted(last.out.split()) == ["03", "13", "23"]
    nowhere = tailrace("consume", topic, "--partition", "7")
    assert nowhere.code == 1
    assert "0 to 2" in nowhere.err
    beyond = tailrace("consume", topic, "--partition", "0", "--offset", "99")
    assert beyond.code == 1
    assert "partition 0" in beyond.err


def test_fewer_messages_than_asked_for_is_a_failure(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic)
    tailrace("produce", topic, stdin="only one\n")
    read = tailrace("consume", topic, "--from-beginning", "--max", "2", "--timeout", "0.2")
    assert (read.code, read.out) == (1, "only one\n")
    assert read.err == "tailrace: only 1 of 2 messages were received.\n"
    assert tailrace("consume", topic, "--from-beginning", "--timeout", "0.2").code == 0


def test_a_line_without_a_key_stops_after_the_lines_before_it(tailrace: Program, topic: str) -> None:
    tailrace("topic", "create", topic)
    sent = tailrace("produce", topic, "--key-separator", ":", stdin="a:1\nb:2\nc 3\nd:4\n")
    assert sent.code == 1
    assert "line 3" in sent.err
    assert tailrace("consume", topic, "--from-beginning", "--to-end").out == "1\n2\n"


def test_consume_does_not_create_a_missing_topic(tailrace: Program) -> None:
    read = tailrace("consume", "no-such-topic", "--from-beginning")
    assert read.code == 1
    assert "no-such-topic" in read.err
    assert "no-such-topic" not in tailrace("topic", "list").out


def test_produce_fails_early_if_the_topic_is_missing(topic: str) -> None:
    with Broker(fsync="never", auto_create_topics_enable="no") as strict:
        start = time.monotonic()
        sent = run_tailrace("produce", topic, stdin="lost\n", bootstrap=strict.bootstrap)
        assert time.monotonic() - start < 15  # sending would retry for 30 s
    assert sent.code == 1
    assert f"cannot find topic {topic}" in sent.err


@pytest.mark.parametrize("end", ["interrupt", "reader gone"])
def test_consume_ends_cleanly(broker: Broker, tailrace: Program, topic: str, end: str) -> None:
    tailrace("topic", "create", topic)
    tailrace("produce", topic, stdin="first\n" * 100_000)
    process = start_tailrace("consume", topic, "--from-beginning", TAILRACE_BOOTSTRAP=broker.bootstrap)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "first\n"
    if end == "interrupt":
        for _ in range(99_999):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(DEADLINE_S) == 0
    process.stderr.close()
