"""Kafka Streams with a store whose changelog is compacted while it is written, for minutes, in small segments: the
changelog stays as small as the table in it, and a store whose files are lost comes back from it as it was.
"""

import logging
import random
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tailrace.testing import Broker, Cluster
from tests.interop import toolchains
from tests.interop.call_process import CallProcess
from tests.interop.client import DEADLINE_S, Client
from tests.interop.compacted import (
    QUICK_COMPACTION,
    Stored,
    bound_bytes,
    differences,
    for_seconds,
    from_start,
    table_of,
)
from tests.interop.drivers.confluent import Confluent
from tests.interop.feature import feature
from tests.interop.member import soon
from tests.interop.shapes import TopicPlan

logger: Final = logging.getLogger(__name__)

PARTITIONS: Final = 2
KEYS: Final = 500
LOAD_S: Final = 120
EVERY_S: Final = 0.1
STEPS: Final = int(LOAD_S / 3 / EVERY_S)  # in each third of the time
AT_ONCE: Final = 120  # messages every EVERY_S
SEGMENT_BYTES: Final = 32 * 1024
RECORD_BYTES: Final = 80  # of the changelog, at most
LEAST_BYTES: Final = 30  # and at least
CATCH_UP_S: Final = 10  # how much of the load an application that was killed has before it at once
SLACK_BYTES: Final = 3 * SEGMENT_BYTES + int(CATCH_UP_S * AT_ONCE / EVERY_S / PARTITIONS) * RECORD_BYTES // 2
FORGET: Final = "forget"
WITHIN_S: Final = 6 * DEADLINE_S
CHANGELOG: Final = {
    "segment.bytes": SEGMENT_BYTES,
    "segment.ms": 10_000,
    "min.cleanable.dirty.ratio": 0.1,
    "delete.retention.ms": 5000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    bootstrap: str
    data_dirs: tuple[Path, ...]
    replication: int


@pytest.fixture
def one_broker() -> Iterator[Where]:
    with Broker(**QUICK_COMPACTION) as broker:
        yield Where(bootstrap=broker.bootstrap, data_dirs=(broker.data_dir,), replication=1)


@pytest.fixture
def three_brokers() -> Iterator[Where]:
    with Cluster(3, proxied=False, **QUICK_COMPACTION) as cluster:
        folders = tuple(Path(place.data_dir) for place in cluster.places)
        yield Where(bootstrap=cluster.bootstrap, data_dirs=folders, replication=3)


class Input:
    """What is written, and the table that must come of it."""

    def __init__(self, where: Where, topic: str) -> None:
        self.table: dict[str, str] = {}
        self.sent = 0
        self._topic = topic
        self._random = random.Random(7)
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            {"bootstrap.servers": where.bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random"}
        )

    def write(self, count: int) -> None:
        for _ in range(count):
            key = f"key-{int(self._random.triangular(0, KEYS, 0))}"
            if self._random.random() < 0.05:
                self._send(key, FORGET)
                self.table.pop(key, None)
            else:
                message = f"message-{self.sent}"
                before = int(self.table.get(key, "0").split(":")[0])
                self._send(key, message)
                self.table[key] = f"{before + 1}:{message}"
        assert self._producer.flush(DEADLINE_S) == 0
        assert self._failed == []

    def _send(self, key: str, message: str) -> None:
        self._producer.produce(self._topic, message, key, on_delivery=self._delivered)
        self.sent += 1

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)


class Application:
    """`Totals` on a topic of its own; `lose_state` kills it and removes its files."""

    def __init__(self, where: Where, guarantee: str, folder: Path) -> None:
        self.name = f"totals-{uuid.uuid4().hex[:12]}"
        self.changelog = f"{self.name}-totals-changelog"
        self._where = where
        self._guarantee = guarantee
        self._folder = folder / "state"
        self._properties = folder / "changelog.properties"
        self._properties.write_text("".join(f"topic.{name}={value}\n" for name, value in CHANGELOG.items()))
        self.input = f"{self.name}-in"
        self._start()

    def _start(self) -> None:
        command = [*toolchains.java("Totals"), self._guarantee, str(self._where.replication), str(self._folder)]
        arguments = [self.name, self.input, self._where.bootstrap]
        self._process = CallProcess("Totals", [*command, *arguments], INTEROP_PROPERTIES=str(self._properties))

    def kill_and_restart(self) -> None:
        self._process.kill()
        self._start()

    def lose_state(self) -> None:
        self._process.kill()
        shutil.rmtree(self._folder)
        self._start()

    def close(self) -> None:
        self._process.kill()

    @property
    def runs(self) -> bool:
        return bool(self._process.ask("state") == "RUNNING")

    @property
    def contents(self) -> dict[str, str]:
        return dict(self._process.ask("contents")) if self.runs else {}

    @property
    def restored(self) -> int:
        return int(self._process.ask("restored"))


@feature("a Kafka Streams changelog (at_least_once) stays small for minutes; lost state comes back from it", "workers")
def test_at_least_once(client: Client, one_broker: Where, tmp_path: Path) -> None:
    run("at_least_once", one_broker, tmp_path)


@feature("the same (exactly_once_v2) on three brokers, killed in the middle of it", "workers")
def test_exactly_once(client: Client, three_brokers: Where, tmp_path: Path) -> None:
    run("exactly_once_v2", three_brokers, tmp_path)


def run(guarantee: str, where: Where, folder: Path) -> None:
    bench = Confluent(where.bootstrap)
    application = Application(where, guarantee, folder)
    try:
        bench.create_topic(application.input, TopicPlan(partitions=PARTITIONS, replication=where.replication))
        given = Input(where, application.input)
        given.write(1)
        soon(lambda: application.contents == given.table, WITHIN_S)
        changelog = Stored(where.data_dirs, application.changelog, bench)

        def step() -> None:
            given.write(AT_ONCE)
            changelog.look()

        for_seconds(LOAD_S / 3, EVERY_S, step, at_least=STEPS)
        if guarantee == "exactly_once_v2":
            application.kill_and_restart()
        for_seconds(LOAD_S / 3, EVERY_S, step, at_least=STEPS)
        if guarantee == "exactly_once_v2":
            application.lose_state()
        for_seconds(LOAD_S / 3, EVERY_S, step, at_least=STEPS)
        assert_comes_back(application, given, bench)
        assert_small(application, given, changelog, where)
    finally:
        application.close()


def assert_comes_back(application: Application, given: Input, bench: Client) -> None:
    settle(application, given, bench)
    application.lose_state()
    wait_for_table(application, given)
    assert len(given.table) <= application.restored < given.sent / 5
    given.write(AT_ONCE)
    settle(application, given, bench)


def settle(application: Application, given: Input, bench: Client) -> None:
    """Wait until the application has committed all that it was given: the store is as it must be."""
    ends = {partition: bench.watermarks(application.input, partition)[1] for partition in range(PARTITIONS)}
    soon(lambda: bench.committed(application.name, application.input) == ends, WITHIN_S)
    wait_for_table(application, given)


def wait_for_table(application: Application, given: Input) -> None:
    """Until it runs, it shows nothing; all input was consumed, so that nothing but the changelog adds to its store."""
    soon(lambda: application.runs and len(application.contents) >= len(given.table), WITHIN_S)
    assert differences(application.contents, given.table) == {}


def assert_small(application: Application, given: Input, changelog: Stored, where: Where) -> None:
    bound = bound_bytes(KEYS // PARTITIONS, RECORD_BYTES, SLACK_BYTES)
    read = [from_start(where.bootstrap, application.changelog, partition) for partition in range(PARTITIONS)]
    logger.info(
        "%d messages, %d keys, restored %d records; partitions had at most %d bytes, now (records, last offset) %s",
        given.sent,
        len(given.table),
        application.restored,
        changelog.most_bytes,
        [(len(records), records[-1].offset) for records in read],
    )
    assert changelog.most_bytes < bound < LEAST_BYTES * min(records[-1].offset for records in read) / 3
    assert differences(table_of([record for records in read for record in records]), given.table) == {}
