"""Programs that read and write exactly once, on three brokers, killed in the middle: with Kafka's own client alone, and
with Kafka Streams, whose counts live in a store, a changelog and a repartition topic.

Each message of the input must have come out once, for readers of committed records.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tailrace.testing import Cluster
from tests.interop import toolchains
from tests.interop.client import DEADLINE_S, Client
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.member import soon
from tests.interop.messages import Message
from tests.interop.shapes import TopicPlan
from tests.interop.three_brokers import bootstrap as bootstrap
from tests.interop.three_brokers import clients as clients
from tests.interop.three_brokers import three_brokers
from tests.interop.worker import Worker

PARTITIONS = 2
EACH = 500  # messages a partition
WHOLE = PARTITIONS * EACH
WITHIN_S = 6 * DEADLINE_S  # JVMs start in it, and what the dead left open is timed out
last_words = [b"last-%d" % number for number in range(20)]
words = [b"word-%d" % (number % 7) for number in range(EACH)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from three_brokers(group_consumer_session_timeout_ms=6000)


@pytest.fixture
def input(name: str, bench: Client) -> str:
    topic = made(f"{name}-in", bench)
    numbered = [Message(key=b"%d" % number, value=word) for number, word in enumerate(words)]
    for partition in range(PARTITIONS):
        bench.produce(topic, numbered, partition=partition)
    return topic


class Output:
    """A topic, and what readers of committed records have seen of it."""

    def __init__(self, topic: str, bootstrap: str) -> None:
        self.topic = topic
        self.seen: list[tuple[int, bytes, bytes]] = []  # partition, key, value
        settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": "read_committed"}
        self._consumer = Consumer({**settings, "fetch.wait.max.ms": 50, "log_level": 0})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])

    def has(self, count: int) -> bool:
        for message in self._consumer.consume(WHOLE, 0.2):
            key, value, partition = message.key(), message.value(), message.partition()
            assert message.error() is None, message.error()
            assert key is not None
            assert value is not None
            assert partition is not None
            self.seen.append((partition, key, value))
        return len(self.seen) >= count

    def has_nothing_more(self) -> bool:
        count = len(self.seen)
        return not self.has(count + 1)

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def output(name: str, bench: Client, bootstrap: str) -> Iterator[Output]:
    output = Output(made(f"{name}-out", bench), bootstrap)
    yield output
    output.close()


def made(topic: str, bench: Client) -> str:
    bench.create_topic(topic, TopicPlan(partitions=PARTITIONS, replication=3))
    eventually(lambda: topic in bench.list_topics())
    return topic


@pytest.fixture
def application() -> str:
    return f"application-{uuid.uuid4().hex[:12]}"


@pytest.mark.parametrize("protocol", ["cooperative-sticky", "consumer"])
@feature(
    "consume, transform, produce in a group ({protocol}): a worker is killed, its messages come out once", "workers"
)
def test_transform(
    client: Client, protocol: str, input: str, output: Output, application: str, bootstrap: str, tmp_path: Path
) -> None:
    command = [*toolchains.java("Transforming"), bootstrap, application, input, output.topic, protocol]
    with Worker([*command, "a"], tmp_path / "a") as first, Worker([*command, "b"], tmp_path / "b") as second:
        soon(lambda: output.has(100), WITHIN_S)
        first.kill_and_restart()
        soon(lambda: output.has(WHOLE), WITHIN_S)
        first.assert_runs()
        second.assert_runs()
    assert output.has_nothing_more()
    for partition in range(PARTITIONS):
        came = [(int(key), value) for where, key, value in output.seen if where == partition]
        assert came == list(enumerate(words))


@feature(
    "Kafka Streams counts words (exactly_once_v2): killed in the middle, it goes on, and counts each once", "workers"
)
def test_streams(
    client: Client, input: str, output: Output, application: str, bootstrap: str, tmp_path: Path, bench: Client
) -> None:
    with counting_worker(bootstrap, application, input, output, tmp_path) as counting:
        for killed_at in (100, 500):
            soon(lambda killed_at=killed_at: output.has(killed_at), WITHIN_S)  # type: ignore[misc]
            counting.kill_and_restart()
        assert_counted(counting, input, output, bench)
    changelog = bench.topic_settings(f"{application}-counts-changelog")
    assert changelog["cleanup.policy"].value == "compact"


@feature("the same while a broker is killed and restarted under it", "workers")
def test_streams_and_brokers(
    client: Client, input: str, output: Output, application: str, cluster: Cluster, tmp_path: Path, bench: Client
) -> None:
    with counting_worker(cluster.bootstrap, application, input, output, tmp_path) as counting:
        for broker in cluster.ids:
            soon(lambda broker=broker: output.has(broker * 200), WITHIN_S)  # type: ignore[misc]
            cluster.kill(broker)
            cluster.restart(broker)
            cluster.wait_until_healthy()
        assert_counted(counting, input, output, bench)


def counting_worker(bootstrap: str, application: str, input: str, output: Output, folder: Path) -> Worker:
    command = [*toolchains.java("Counting"), bootstrap, application, input, output.topic, str(folder / "state")]
    return Worker(command, folder / "log")


def assert_counted(counting: Worker, input: str, output: Output, bench: Client) -> None:
    """Words that come last show that all others are through, once or more often: a count would go on too far."""
    soon(lambda: output.has(WHOLE), WITHIN_S)
    for partition in range(PARTITIONS):
        bench.produce(input, [Message(value=word) for word in last_words], partition=partition)
    soon(lambda: output.has(WHOLE + PARTITIONS * len(last_words)), WITHIN_S)
    counting.assert_runs()
    told: dict[bytes, list[int]] = defaultdict(list)
    for _, word, count in output.seen:
        told[word].append(int(count))
    given = Counter([*words, *last_words])
    assert told == {word: list(range(1, PARTITIONS * given[word] + 1)) for word in given}
