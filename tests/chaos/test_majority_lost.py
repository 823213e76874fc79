"""Two of three brokers are gone: nothing more is promised, nothing that was promised is lost, and no hand is needed."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tailrace.testing import Cluster
from tests.chaos.readers import read_back
from tests.chaos.record_key import RecordKey
from tests.chaos.storm import make_topic

pytestmark = pytest.mark.chaos

TOPIC = "t"
PARTITIONS = 3
SETTLED_WITHIN_S = 60.0
LOST_TIMEOUT_MS = 3_000

REFUSALS = {  # with retries a client would see the time-out alone
    "_MSG_TIMED_OUT",
    "_TRANSPORT",
    "REQUEST_TIMED_OUT",
    "NOT_ENOUGH_REPLICAS",
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
}

Outcome = tuple[RecordKey, str | None, int | None]  # the error's name, or the offset


def write(cluster: Cluster, writer: int, count: int, timeout_ms: int, *, retries: bool = True) -> list[Outcome]:
    """Send records with acks=all to all partitions; what became of each.

    Whoever retries is idempotent: leaders may change at any moment, and one that is deposed cannot tell its producer
    whether the next one has what it had taken."""
    outcomes: list[Outcome] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        why = None if error is None else error.name()
        outcomes.append((RecordKey.of(message.key() or b""), why, message.offset()))

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "enable.idempotence": retries,
            **({} if retries else {"retries": 0}),
            "message.timeout.ms": timeout_ms,
            "log_level": 0,
        }
    )
    for number in range(count):
        for partition in range(PARTITIONS):
            key = RecordKey(writer, partition, number).to_bytes()
            producer.produce(TOPIC, b"v", key, partition, delivered)
    assert producer.flush(timeout_ms / 1000 + 30) == 0
    return outcomes


def take_away(cluster: Cluster, gone: list[int], how: str) -> Callable[[], None]:
    """Take brokers out; how they come back."""
    if how == "kill":
        cluster.kill(*gone)
        return lambda: cluster.restart(*gone)
    if how == "pause":
        cluster.pause(*gone)
        return lambda: cluster.resume(*gone)
    for one in gone:
        for other in cluster.ids:
            if other != one:
                cluster.partition(one, other)
    return cluster.heal


@pytest.mark.parametrize("how", ["kill", "pause", "cut"])
def test_nothing_is_acknowledged_and_nothing_lost(how: str) -> None:
    with Cluster(3) as cluster:
        make_topic(cluster, TOPIC, PARTITIONS)
        before = write(cluster, 0, 100, 60_000)
        assert [error for _, error, _ in before] == [None] * len(before)
        bring_back = take_away(cluster, [2, 3], how)
        during = write(cluster, 1, 20, LOST_TIMEOUT_MS, retries=False)
        assert len(during) == 20 * PARTITIONS
        assert {error for _, error, _ in during} <= REFUSALS, (
            "acknowledged without a majority, or refused in other words"
        )
        bring_back()
        cluster.wait_until_healthy(SETTLED_WITHIN_S)
        after = write(cluster, 2, 100, 60_000)
        found = read_back(cluster.bootstrap, TOPIC, PARTITIONS, SETTLED_WITHIN_S)
    assert found.complaints == []
    promised = {key: offset for key, error, offset in [*before, *after] if error is None}
    assert len(promised) == 200 * PARTITIONS
    there: dict[RecordKey, list[int]] = {}
    for partition, rows in enumerate(found.found):
        for offset, writer, number in map(rows.row, range(len(rows))):
            there.setdefault(RecordKey(writer, partition, number), []).append(offset)
    assert {key: offsets for key, offsets in there.items() if len(offsets) > 1} == {}, "records are there twice"
    assert {key: there.get(key) for key in promised} == {key: [offset] for key, offset in promised.items()}
