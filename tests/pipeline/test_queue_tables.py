"""The HTTP queue as tables of a real PostgreSQL, filled by the command; no Spark."""

import json
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tailrace.testing import Broker
from tests.pipeline.queue_tables import command, contents, fill, killed_in_a_transaction, own_database, rows, run_sink
from tests.unit.doors.http.test_http_queue_libraries import load, run, until

PAYLOADS = ["plain", "ünï", "", "zero \0", "a\nb\tc\\d"]


@pytest.fixture
def queue(dsn: str) -> Iterator[str]:
    with own_database(dsn) as found:
        yield found


@pytest.fixture
def door() -> Iterator[Broker]:
    with Broker(http_port=0, fsync="never") as broker:
        yield broker


def ask(door: Broker, path: str) -> Any:
    with urllib.request.urlopen(f"http://{door.endpoints['http']}{path}", timeout=30) as answer:
        return json.load(answer)


def libraries() -> tuple[ModuleType, ModuleType]:
    return load("producer_client"), load("consumer_client")


def test_the_system_test_in_small(dsn: str, door: Broker, tmp_path: Path) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    address = door.endpoints["http"]
    run("p", address, tmp_path, "--lines", "20")
    with own_database(dsn, "d_queue") as queue:
        server = dsn.replace("dbname=postgres", "")  # which names no database
        assert run_sink(door.bootstrap, server, "--available-now") == (0, "wrote 100 messages\n")
        run("c", address, tmp_path, "--lines", "20")
        until(lambda: len(ask(door, "/health")["consumers"]) == 9)
        assert fill(door.bootstrap, queue).messages == 0
        expected = {line.split(": ", 1)[1] for line in (tmp_path / "Consumer_1.txt").read_text().splitlines()}
        assert {text for (text,) in rows(queue, "SELECT message FROM message")} == expected
        assert len(expected) == 100
        per_producer = """SELECT split_part(m.message, ' ', 1), m.topic, count(*), count(DISTINCT p.id)
            FROM message m JOIN producer p ON p.id = m.producer_id AND p.topic = m.topic GROUP BY 1, 2"""
        sent = rows(queue, per_producer)
        assert sum(count for _, _, count, _ in sent) == 100  # all by producers that are known
        assert {ids for _, _, _, ids in sent} == {1}
        assert rows(queue, "SELECT count(*), sum(size) FROM consumer") == [(9, 0)]
        assert rows(queue, "SELECT name, partitions, deleted_at FROM topic ORDER BY 1") == [
            (name, 1, None) for name in ("T-1", "T-2", "T-3")
        ]
        times = rows(
            queue, "SELECT registered_at, last_seen FROM consumer UNION ALL SELECT NULL, last_seen FROM broker"
        )
        assert all(began < seen and (at is None or began < at < seen) for at, seen in times)
        assert rows(queue, "SELECT id, address, alive FROM broker") == [(1, door.bootstrap, True)]
        health = {one["id"]: one["last_seen_ms"] for one in ask(door, "/health")["producers"]}
        kept = dict(rows(queue, "SELECT id, extract(epoch FROM last_seen) * 1000 FROM producer"))
        assert {number: int(at_ms) for number, at_ms in kept.items() if at_ms is not None} == health


def test_a_sink_that_is_killed_in_a_transaction_goes_on(queue: str, door: Broker) -> None:
    producers, _ = libraries()
    producer = producers.MyProducer(["t"], door.endpoints["http"])
    for number in range(20):
        producer.Enqueue("t", f"m{number}")
    assert fill(door.bootstrap, queue).messages == 20
    for number in range(20, 50):
        producer.Enqueue("t", f"m{number}")
    with killed_in_a_transaction(command(door.bootstrap, queue, "--available-now"), queue):
        pass
    assert rows(queue, "SELECT count(*) FROM message") == [(20,)]
    assert fill(door.bootstrap, queue).messages == 30
    found = rows(queue, 'SELECT message, number, "offset" FROM message ORDER BY number')
    assert found == [(f"m{number}", number + 1, number) for number in range(50)]
    before = contents(queue)
    assert fill(door.bootstrap, queue).messages == 0
    assert contents(queue) == before


def test_sizes_are_those_of_the_queue(queue: str, door: Broker) -> None:
    producers, consumers = libraries()
    address = door.endpoints["http"]
    producer = producers.MyProducer([], address)
    producer.CreateTopic("wide", 3)
    consumer = consumers.MyConsumer(["wide"], address)
    late = consumers.MyConsumer(["wide"], address)
    for payload in PAYLOADS:
        producer.Enqueue("wide", payload)
    for left in (5, 3, 0):
        while consumer.Size("wide") > left:
            consumer.Dequeue("wide")
        fill(door.bootstrap, queue)
        assert [size for (size,) in rows(queue, "SELECT size FROM consumer ORDER BY id")] == [left, late.Size("wide")]
    kept = rows(queue, "SELECT message, message_bytes FROM message WHERE topic = 'wide'")
    assert sorted(kept, key=str) == sorted(
        [(None, text.encode()) if "\0" in text else (text, None) for text in PAYLOADS], key=str
    )
