"""Real brokers: one flipped bit in a closed segment, in one replica of three and in the only one."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tailrace.testing import Broker, Cluster
from tests.chaos.storm import make_topic
from tests.unit.cli.program import run_tailrace

pytestmark = [pytest.mark.chaos, pytest.mark.long]

COUNT = 200
SETTINGS: dict[str, Any] = {
    "log_scrub_interval_ms": 500,
    "log_segment_bytes": 20_000,
    "log_scrub_max_bytes_per_second": 1 << 30,
}
WITHIN_S = 60.0
values = [b"%0800d" % number for number in range(COUNT)]


def write(bootstrap: str, records: list[bytes]) -> None:
    """One batch for each record, acknowledged by all in sync."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "batch.num.messages": 1, "acks": "all"})
    for value in records:
        producer.produce("t", value, partition=0)
    assert producer.flush(WITHIN_S) == 0


def read(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "check.crcs": True})
    try:
        consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
        found: list[bytes | None] = []
        deadline = time.monotonic() + WITHIN_S
        while len(found) < count and time.monotonic() < deadline:
            found += [one.value() for one in consumer.consume(1000, timeout=0.2) if one.error() is None]
        return found
    finally:
        consumer.close()


@contextmanager
def serving(data_dir: Path) -> Iterator[Broker]:
    broker = Broker(data_dir=data_dir, **SETTINGS)
    try:
        broker.start(timeout_s=WITHIN_S)
        yield broker
    finally:
        broker.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {WITHIN_S} s"
        time.sleep(0.02)


def second_segment(data_dir: Path) -> Path:
    folders = [one for one in data_dir.iterdir() if one.is_dir() and not one.name.startswith("AAAAAAAA")]
    (files,) = [found for one in folders if len(found := sorted(one.glob("*.log"))) > 3]
    return files[1]


def content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def flip_bit(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 0x10]))


@pytest.mark.parametrize("of_leader", [True, False])
def test_a_replica_of_three_is_repaired_while_its_broker_serves(of_leader: bool, tmp_path: Path) -> None:
    lines: list[tuple[int, str]] = []
    with Cluster(3, data_dir=tmp_path / "c", on_log=lambda *line: lines.append(line), **SETTINGS) as cluster:
        make_topic(cluster, "t", 1)
        write(cluster.bootstrap, values)
        view = cluster.look(1).partition("t", 0)
        assert view is not None
        leader = view.leader
        assert leader is not None
        damaged = leader if of_leader else next(one for one in view.replicas if one != leader)
        pid = cluster.broker(damaged).pid
        path = second_segment(Path(cluster.places[damaged - 1].data_dir))
        good = path.read_bytes()
        flip_bit(path, 100)
        until(lambda: any(one == damaged and f"found damage: {path} at byte 0" in line for one, line in lines))
        write(cluster.bootstrap, [b"after"])
        until(lambda: any(one == damaged and "caught up after data loss" in line for one, line in lines))
        until(lambda: content(path) == good)  # there is no such file while it is replaced
        until(lambda: not (path.parent / "aside").exists() and not (path.parent / "refilling").exists())
        assert cluster.broker(damaged).pid == pid
        assert read(cluster.bootstrap, COUNT + 1) == [*values, b"after"]
        until(
            lambda: (
                json.loads(run_tailrace("cluster", "status", "--json", bootstrap=cluster.bootstrap).out)["damaged"]
                == []
            )
        )


def test_the_only_replica_is_named_and_repaired_by_hand(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as broker:
        write(broker.bootstrap, values)
        path = second_segment(tmp_path / "data")
        sound = int(path.stem)
        flip_bit(path, 100)

        def damaged() -> list[dict[str, object]]:
            found: list[dict[str, object]] = json.loads(
                run_tailrace("cluster", "status", "--json", bootstrap=broker.bootstrap).out
            )["damaged"]
            return found

        until(lambda: damaged() != [])
        (one,) = damaged()
        assert (one["topic"], one["partition"], one["broker"]) == ("t", 0, 1)
        assert str(one["where"]).startswith(f"{path} at byte 0, offset {sound}: checksum mismatch")
        assert read(broker.bootstrap, sound) == values[:sound]
    where = ("log", "repair", "t", "--data-dir", str(tmp_path / "data"))
    assert f"{path} at byte 0: " in run_tailrace(*where).out
    assert run_tailrace(*where, "--yes").code == 0
    with serving(tmp_path / "data") as broker:
        write(broker.bootstrap, [b"after"])
        assert read(broker.bootstrap, COUNT) == [*values[:sound], *values[sound + 1 :], b"after"]
        assert json.loads(run_tailrace("cluster", "status", "--json", bootstrap=broker.bootstrap).out)["damaged"] == []
