"""Kafka Connect in distributed mode, exactly once, whose topics are compacted in small segments while connectors are
made, changed, paused and removed for minutes: configuration, states and offsets stay small, and a worker that is
killed and started anew has all of them, and goes on where it was.
"""

import logging
import random
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tailrace.testing import Broker
from tests.interop.client import Client
from tests.interop.compacted import QUICK_COMPACTION, Stored, for_seconds, from_start
from tests.interop.connect_worker import WITHIN_S, ConnectWorker, NotThere
from tests.interop.drivers.confluent import Confluent
from tests.interop.feature import feature
from tests.interop.member import soon
from tests.interop.shapes import TopicPlan

logger: Final = logging.getLogger(__name__)

LOAD_S: Final = 120
EVERY_S: Final = 0.1
COUNTING: Final = ("counting-1", "counting-2", "counting-3")
PASSING: Final = "passing"  # a connector that comes and goes
COUNTERS: Final = 10  # of each connector
MORE_AT_MOST: Final = 50  # numbers of each counter
LINES: Final = 20  # at once
SEGMENT_BYTES: Final = 8 * 1024
STORAGES: Final = ("config", "offset", "status")
BOUND_BYTES: Final = 24 * SEGMENT_BYTES
SMALL: Final = {
    "segment.bytes": SEGMENT_BYTES,
    "segment.ms": 5000,
    "min.cleanable.dirty.ratio": 0.1,
    "delete.retention.ms": 3000,
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(**QUICK_COMPACTION) as broker:
        yield broker


def settings(cluster: str, bootstrap: str) -> dict[str, object]:
    of_topics = {f"{one}.storage.{name}": value for one in STORAGES for name, value in SMALL.items()}
    return of_topics | {
        "bootstrap.servers": bootstrap,
        "group.id": cluster,
        **{f"{one}.storage.topic": f"{cluster}-{one}" for one in STORAGES},
        **{f"{one}.storage.replication.factor": 1 for one in STORAGES},
        **{f"{one}.storage.partitions": 1 for one in ("offset", "status")},
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "exactly.once.source.support": "enabled",
        "listeners": "http://127.0.0.1:0",
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": 100,
        "scheduled.rebalance.max.delay.ms": 0,
        "heartbeat.interval.ms": 500,
        "session.timeout.ms": 6000,
    }


class Lines:
    """A file, the connector that sends its lines to a topic, and the one that writes the topic to another file."""

    def __init__(self, topic: str, folder: Path) -> None:
        self.topic = topic
        self._file, self._sink = folder / "lines", folder / "sink"
        self._file.touch()
        self.lines: list[bytes] = []

    def append(self, count: int) -> None:
        more = [b"line %d" % (len(self.lines) + number) for number in range(count)]
        with self._file.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in more))
        self.lines += more

    @property
    def offsets(self) -> dict[str, Any]:
        return {str(self._file): {"position": self._file.stat().st_size}}

    @property
    def connectors(self) -> dict[str, dict[str, str]]:
        source = {"connector.class": "FileStreamSource", "topic": self.topic, "file": str(self._file)}
        sink = {"connector.class": "FileStreamSink", "topics": self.topic, "file": str(self._sink)}
        return {"lines": source, "sink": sink}

    @property
    def arrived(self) -> list[bytes]:
        """The lines in the last file, each once: a sink may write some again when it starts anew."""
        return list(dict.fromkeys(self._sink.read_bytes().splitlines()))


class Connect:
    """The worker, and what it must know: the configuration and state of each connector, and how far each counts."""

    def __init__(self, worker: ConnectWorker, cluster: str, lines: Lines) -> None:
        self.worker = worker
        self.cluster = cluster
        self.configs: dict[str, dict[str, str]] = {}
        self.states: dict[str, str] = {}
        self.limits: dict[str, int] = {}
        self.changes = 0
        self._lines = lines
        self._random = random.Random(11)
        for name, config in lines.connectors.items():
            self.configure(name, config)
        for name in COUNTING:
            self.count_on(name)

    def configure(self, name: str, config: dict[str, str]) -> None:
        told = self.worker.ask("PUT", f"/connectors/{name}/config", config)
        assert told["config"] == (config | {"name": name})
        self.configs[name] = told["config"]
        self.states.setdefault(name, "RUNNING")
        self.changes += 1

    def topic_of(self, name: str) -> str:
        return f"{self.cluster}-{name}"

    def count_on(self, name: str) -> None:
        """Let its counters go on to a new limit."""
        limit = self.limits.get(name, 0) + self._random.randint(1, MORE_AT_MOST)
        config = {"connector.class": "Counters", "topic": self.topic_of(name), "counters": str(COUNTERS)}
        self.configure(name, config | {"limit": str(limit)})
        self.limits[name] = limit

    def turn(self, name: str, verb: str, state: str) -> None:
        self.worker.ask("PUT", f"/connectors/{name}/{verb}")
        self.states[name] = state
        self.changes += 1

    def forget(self, name: str) -> None:
        """Remove a connector and its offsets, which are tombstones then."""
        self.turn(name, "stop", "STOPPED")
        self.wait_for(lambda: self._state(name), "STOPPED")
        self.worker.ask("DELETE", f"/connectors/{name}/offsets")
        self.worker.ask("DELETE", f"/connectors/{name}")
        del self.configs[name], self.states[name], self.limits[name]

    def step(self) -> None:
        """One change, and some more lines."""
        self._lines.append(LINES)
        name = self._random.choice([*COUNTING, PASSING])
        if name not in self.configs or self._random.random() < 0.7:
            self.count_on(name)
        elif name == PASSING:
            self.forget(name)
        elif self.states[name] == "RUNNING":
            self.turn(name, "pause", "PAUSED")
        else:
            self.turn(name, "resume", "RUNNING")

    def resume_all(self) -> None:
        for name in [name for name, state in self.states.items() if state != "RUNNING"]:
            self.turn(name, "resume", "RUNNING")

    def assert_known(self) -> None:
        """All configurations are there at once; states and offsets as soon as tasks have come so far."""
        assert sorted(self.worker.ask("GET", "/connectors")) == sorted(self.configs)
        assert {name: self.worker.ask("GET", f"/connectors/{name}/config") for name in self.configs} == self.configs
        self.wait_for(lambda: {name: self._state(name) for name in self.states}, self.states)
        expected = {"lines": self._lines.offsets}
        for name, limit in self.limits.items():
            expected[name] = {f"counter-{number}": {"last": limit} for number in range(COUNTERS)}
        self.wait_for(lambda: {name: self._offsets(name) for name in expected}, expected)

    def wait_for(self, found: Callable[[], object], expected: object) -> None:
        last: list[object] = []

        def is_there() -> bool:
            last[:] = [found()]
            return last == [expected]

        try:
            soon(is_there, WITHIN_S)
        except AssertionError:
            assert last == [expected]  # which says what differs
            raise

    def _state(self, name: str) -> str:
        try:
            told = self.worker.ask("GET", f"/connectors/{name}/status")
        except NotThere:
            return "not there"
        states = {str(one["state"]) for one in [told["connector"], *told["tasks"]]}
        return states.pop() if len(states) == 1 else str(told)

    def _offsets(self, name: str) -> dict[str, object]:
        told = self.worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return {next(iter(one["partition"].values())): one["offset"] for one in told}


@feature("Kafka Connect, exactly once: its topics stay small for minutes, a worker started anew knows all", "workers")
def test_connect(client: Client, broker: Broker, tmp_path: Path) -> None:
    cluster = f"connect-{uuid.uuid4().hex[:12]}"
    bench = Confluent(broker.bootstrap)
    lines = Lines(f"{cluster}-lines", tmp_path)
    for topic in ("lines", *COUNTING, PASSING):
        bench.create_topic(f"{cluster}-{topic}", TopicPlan())
    with ConnectWorker(tmp_path, settings(cluster, broker.bootstrap)) as worker:
        connect = Connect(worker, cluster, lines)
        storages = [Stored([broker.data_dir], f"{cluster}-{one}", bench) for one in STORAGES]

        def step() -> None:
            connect.step()
            for stored in storages:
                stored.look()

        for _ in range(2):
            for_seconds(LOAD_S / 2, EVERY_S, step)
            worker.kill_and_restart()
        connect.resume_all()
        connect.assert_known()
        worker.kill_and_restart()
        connect.assert_known()
        lines.append(LINES)
        for name in COUNTING:
            connect.count_on(name)
        connect.assert_known()
        soon(lambda: lines.arrived == lines.lines, WITHIN_S)
    assert [record.value for record in from_start(broker.bootstrap, lines.topic, 0)] == lines.lines
    for name in COUNTING:
        assert_counted(broker.bootstrap, connect.topic_of(name), connect.limits[name])
    logger.info("%d changes, limits of counters %s", connect.changes, connect.limits)
    for stored in storages:
        records = from_start(broker.bootstrap, stored.topic, 0)
        last, most = records[-1].offset, stored.most_bytes
        logger.info("%s: at most %d bytes; %d records, last offset %d", stored.topic, most, len(records), last)
        assert most < BOUND_BYTES


def assert_counted(bootstrap: str, topic: str, limit: int) -> None:
    """Each counter has sent each number once, in order."""
    numbers: dict[bytes | None, list[int]] = {}
    for record in from_start(bootstrap, topic, 0):
        numbers.setdefault(record.key, []).append(int(record.value or b""))
    assert numbers == {b"counter-%d" % number: list(range(1, limit + 1)) for number in range(COUNTERS)}
