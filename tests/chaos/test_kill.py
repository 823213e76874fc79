"""kill -9 a real broker under load, again and again: every acknowledged message is there, in order, once."""

import random
import time

import pytest

from tailrace.testing import Broker
from tests.chaos.load import ConfluentLoad, RawLoad, check, consume

TOPIC = "t"
PARTITIONS = 2


def kill_under_load(seed: int, kills: int) -> None:
    chance = random.Random(seed)
    with Broker(
        num_partitions=PARTITIONS,
        log_segment_bytes=chance.choice([20_000, 1 << 30]),
        log_flush_offset_checkpoint_interval_ms=chance.choice([100, 60_000]),
    ) as broker:
        broker.restart()  # from now on at the same port
        loads: list[ConfluentLoad | RawLoad] = [
            ConfluentLoad(broker.bootstrap, TOPIC, PARTITIONS),
            RawLoad(broker.port, TOPIC, 1),
        ]
        try:
            for _ in range(kills):
                # librdkafka takes half a second to come back: every other kill may find it on its way
                wait_for_progress(loads if chance.random() < 0.5 else loads[1:])
                time.sleep(chance.uniform(0.0, 0.15))  # a moment nobody can foresee: what this is about
                broker.kill()
                broker.restart()
        finally:
            for load in loads:
                load.stop()
        for load in loads:
            assert load.promised.failures == []
            assert load.promised.acknowledged == load.promised.sent > 10 * kills
        for partition in range(PARTITIONS):
            found = consume(broker.bootstrap, TOPIC, partition)
            for load in loads:
                check(load.promised, load.name, partition, found)


def wait_for_progress(loads: list[ConfluentLoad | RawLoad]) -> None:
    """Until all of them have been acknowledged something more."""
    before = [load.promised.acknowledged for load in loads]
    deadline = time.monotonic() + 30
    while any(load.promised.acknowledged <= count for load, count in zip(loads, before, strict=True)):
        assert time.monotonic() < deadline, "no record was acknowledged for 30 s"
        time.sleep(0.002)


def run(seed: int, kills: int) -> None:
    try:
        kill_under_load(seed, kills)
    except BaseException as error:
        error.add_note(f"seed {seed}: python -m pytest tests/chaos -m chaos -k '{seed}'")
        raise


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [1])
def test_ten_kills_lose_and_double_nothing(seed: int) -> None:
    run(seed, kills=10)


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(100, 105))
def test_a_hundred_kills_lose_and_double_nothing(seed: int) -> None:
    run(seed, kills=20)
