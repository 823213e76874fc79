"""Readers of compacted topics: every client reads from the start, or from any offset, over the holes that compaction
leaves. No offset comes twice or out of order, and the last value of each key is there.
"""

import os
import random
import threading
from collections.abc import Iterator
from itertools import pairwise
from types import TracebackType
from typing import Final, Self

import pytest
from confluent_kafka import Producer

from tailrace.testing import Broker
from tests.interop.client import DEADLINE_S, Client
from tests.interop.compacted import QUICK_COMPACTION, from_start
from tests.interop.drivers.confluent import Confluent
from tests.interop.feature import feature
from tests.interop.member import soon
from tests.interop.messages import Reader, Reading, Received
from tests.interop.shapes import TopicPlan
from tests.interop.three_brokers import clients as clients

KEYS: Final = 100
MESSAGES: Final = 20_000
AT_ONCE: Final = 50  # messages every EVERY_S
EVERY_S: Final = 0.05
SMALL: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "min.cleanable.dirty.ratio": "0.05",
    "delete.retention.ms": "500",
}
Table = dict[bytes, int]  # by key, the number of its last message; negative: it was deleted by it


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    if "TAILRACE_INTEROP_BOOTSTRAP" in os.environ:
        pytest.skip("these tests need a broker that compacts at once")
    with Broker(**QUICK_COMPACTION) as broker:
        yield broker.bootstrap


class Writer:
    """Writes numbered messages of random keys; some have no value, and delete their key."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.table: Table = {}
        self._topic = topic
        self._random = random.Random(3)
        self._number = 0
        self._failed: list[object] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})

    def write(self, count: int) -> None:
        fresh: Table = {}
        for _ in range(count):
            self._number += 1
            key = b"key-%d" % int(self._random.triangular(0, KEYS, 0))
            is_deleted = self._random.random() < 0.1
            value = None if is_deleted else b"%d" % self._number
            self._producer.produce(self._topic, value, key, on_delivery=lambda error, _: self._note(error))
            fresh[key] = -self._number if is_deleted else self._number
        assert self._producer.flush(DEADLINE_S) == 0
        assert self._failed == []
        self.table = self.table | fresh

    def _note(self, error: object) -> None:
        if error is not None:
            self._failed.append(error)


class Writing:
    """Goes on writing, beside what the test does."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._ends = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ends.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ends.wait(EVERY_S):
                self._writer.write(AT_ONCE)
        except BaseException as failure:
            self._failure = failure


@pytest.fixture(scope="module")
def compacted(bootstrap: str) -> tuple[str, Table, list[Received]]:
    """A topic that was compacted, and no longer is; its table; its records, as librdkafka read them."""
    bench, topic = Confluent(bootstrap), "compacted"
    bench.create_topic(topic, TopicPlan(settings=SMALL))
    writer = Writer(bootstrap, topic)
    for _ in range(MESSAGES // 1000):
        writer.write(1000)
    soon(lambda: len(from_start(bootstrap, topic, 0)) < MESSAGES / 10)
    bench.change_settings(topic, {"min.compaction.lag.ms": "3600000"})
    soon(lambda: from_start(bootstrap, topic, 0) == from_start(bootstrap, topic, 0))
    return topic, writer.table, from_start(bootstrap, topic, 0)


def read_to(reader: Reader, last: int) -> list[Received]:
    """Up to an offset, or the first one after it."""
    records = reader.take(1)
    while records[-1].offset < last:
        records += reader.take(1)
    return records


def assert_says(records: list[Received], table: Table) -> None:
    """Readers see the table as it was when they began, or what came of a key later."""
    seen = {record.key: record.value for record in records}
    for key, number in table.items():
        if number > 0:
            assert key in seen, f"{key!r} is gone, its value was {number}"
        value = seen.get(key)
        assert value is None or int(value) >= abs(number), f"{key!r}: {value!r} is older than {number}"


@feature("read a compacted topic from its start: each offset once, in order, the last value of each key", "reader")
def test_from_start(client: Client, compacted: tuple[str, Table, list[Received]]) -> None:
    topic, table, expected = compacted
    for fetch_bytes in (None, 2000):
        with client.reader(topic, Reading(fetch_bytes=fetch_bytes)) as reader:
            records = reader.take(len(expected))
        assert [(one.offset, one.key, one.value) for one in records] == [
            (one.offset, one.key, one.value) for one in expected
        ]
    assert {key: int(value) for key, value in last_values(records).items()} == {
        key: number for key, number in table.items() if number > 0
    }


def last_values(records: list[Received]) -> dict[bytes, bytes]:
    last: dict[bytes, bytes] = {}
    for record in records:
        assert record.key is not None
        last.pop(record.key, None)
        if record.value is not None:
            last[record.key] = record.value
    return last


@feature("read a compacted topic from an offset that is gone: the next one that is there comes", "reader")
def test_from_a_hole(client: Client, compacted: tuple[str, Table, list[Received]]) -> None:
    topic, _, expected = compacted
    there = [record.offset for record in expected]
    holes = [(one + 1, after) for one, after in pairwise(there) if after > one + 1]
    assert len(holes) > 10
    for start, first in random.Random(5).sample(holes, 4):
        assert client.consume(topic, 1, start=start)[0].offset == first
