"""`tailrace consume --to-end`: it reads to the end, or fails and says where it stopped."""

import signal
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tailrace.cli.messages import reading
from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, run_tailrace, start_tailrace

STOPPED_AT = "partition 0 of orders was read up to offset 5, its end is 10"


@pytest.fixture(scope="module")
def damaged() -> Iterator[Broker]:
    """A broker with ten messages in `orders`, the sixth of which is damaged on disk."""
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "log_level": 0})
        for number in range(10):
            producer.produce("orders", f"order {number}".encode())
            assert producer.flush(DEADLINE_S) == 0
        broker.stop()
        (segment,) = (one for one in broker.data_dir.glob("*/*.log") if not one.parent.name.startswith("AAAAAAAA"))
        data = bytearray(segment.read_bytes())
        data[5 * (12 + int.from_bytes(data[8:12], "big")) + 70] ^= 0x40
        segment.write_bytes(data)
        broker.restart()
        yield broker


def test_a_partition_that_cannot_be_read_is_reported_with_the_brokers_error(damaged: Broker) -> None:
    words = ("consume", "orders", "--from-beginning", "--to-end", "--timeout", "0.5")
    ran = run_tailrace(*words, bootstrap=damaged.bootstrap)
    assert (ran.code, ran.out.splitlines()) == (1, [f"order {number}" for number in range(5)])
    assert f"no message for 0.5 s before the end: {STOPPED_AT} " in ran.err
    assert "KAFKA_STORAGE_ERROR" in ran.err
    assert "broker's log" in ran.err


def test_max_messages_before_the_end_are_a_success(damaged: Broker) -> None:
    words = ("consume", "orders", "--from-beginning", "--to-end", "--max", "3")
    assert run_tailrace(*words, bootstrap=damaged.bootstrap).code == 0


def test_ctrl_c_before_the_end_is_a_failure(damaged: Broker) -> None:
    words = ("consume", "orders", "--from-beginning", "--to-end", "--timeout", "1000")
    process = start_tailrace(*words, TAILRACE_BOOTSTRAP=damaged.bootstrap)
    assert process.stdout is not None
    for _ in range(5):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert errors.startswith(f"tailrace: interrupted before the end: {STOPPED_AT}")


class Silent:
    """A client that receives no messages."""

    def consume(self, _most: int, _timeout_s: float) -> list[object]:
        return []


def test_to_end_has_a_default_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "IDLE_TO_END_S", 0.05)
    nothing = reading.Reading(Silent(), [0, 2], most=None, timeout_s=None, to_end=True)  # type: ignore[arg-type]
    assert list(nothing.lists()) == []
    assert nothing.partitions_before_end == [0, 2]
