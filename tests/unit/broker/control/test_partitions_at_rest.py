"""Partitions at rest are not looked at, and are looked at again as soon as anything happens to them."""

from collections.abc import Callable

import pytest

from tests.unit.broker.simulated import Brokers, simulated


def in_sync(brokers: Brokers, topic: str) -> tuple[int, ...]:
    """As the cluster knows it."""
    return tuple(sorted(brokers[1].hosted.image.topics[topic].partitions[0].in_sync))


async def at_rest(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    await brokers.until(lambda: brokers.replica(1, "t").at_rest)


def paused(brokers: Brokers) -> None:
    brokers.machine(3).pause()


def cut_off(brokers: Brokers) -> None:
    brokers.world.network.isolate("b3")


def killed(brokers: Brokers) -> None:
    brokers.kill(3)


@pytest.mark.parametrize("gone", [paused, cut_off, killed])
@simulated(replica_lag_time_max_ms=2000, broker_session_timeout_ms=60_000)
async def test_a_follower_that_is_gone_is_missed(brokers: Brokers, gone: Callable[[Brokers], None]) -> None:
    """Long before the controller misses its broker, which would stir all partitions."""
    await at_rest(brokers)
    gone(brokers)
    await brokers.until(lambda: in_sync(brokers, "t") == (1, 2))
    assert not brokers.replica(1, "t").at_rest


@simulated(replica_lag_time_max_ms=2000)
async def test_one_that_is_back_is_seen_and_it_rests_again(brokers: Brokers) -> None:
    await at_rest(brokers)
    brokers.kill(3)
    await brokers.until(lambda: in_sync(brokers, "t") == (1, 2))
    await brokers.start(3)
    await brokers.until(lambda: in_sync(brokers, "t") == (1, 2, 3) and brokers.replica(1, "t").at_rest)


@simulated()
async def test_what_is_written_to_does_not_rest(brokers: Brokers) -> None:
    await at_rest(brokers)
    brokers.append(1, "t")
    assert not brokers.replica(1, "t").at_rest
    await brokers.until(lambda: brokers.replica(1, "t").at_rest)
