"""Duties of a partition leader: partitions at rest are not checked until they stir; replaced disks become voters."""

import asyncio
from collections.abc import Callable

import pytest

from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until


def in_sync(brokers: Brokers, topic: str) -> tuple[int, ...]:
    """The ISR in the metadata."""
    return tuple(sorted(brokers[1].hosted.image.topics[topic].partitions[0].in_sync))


async def is_idle(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    await brokers.until(lambda: brokers.replica(1, "t").member.is_idle)


def paused(brokers: Brokers) -> None:
    brokers.machine(3).pause()


def cut_off(brokers: Brokers) -> None:
    brokers.world.network.isolate("b3")


def killed(brokers: Brokers) -> None:
    brokers.kill(3)


@pytest.mark.parametrize("gone", [paused, cut_off, killed])
@simulated(replica_lag_time_max_ms=2000, broker_session_timeout_ms=60_000)
async def test_a_silent_follower_leaves_the_isr(brokers: Brokers, gone: Callable[[Brokers], None]) -> None:
    """Long before the controller fences its broker, which would stir all partitions."""
    await is_idle(brokers)
    gone(brokers)
    await brokers.until(lambda: in_sync(brokers, "t") == (1, 2))
    assert not brokers.replica(1, "t").member.is_idle


@simulated(replica_lag_time_max_ms=2000)
async def test_a_follower_that_is_back_joins_the_isr_and_the_partition_rests_again(brokers: Brokers) -> None:
    await is_idle(brokers)
    brokers.kill(3)
    await brokers.until(lambda: in_sync(brokers, "t") == (1, 2))
    await brokers.start(3)
    await brokers.until(lambda: in_sync(brokers, "t") == (1, 2, 3) and brokers.replica(1, "t").member.is_idle)


@simulated()
async def test_a_partition_that_is_written_to_is_not_at_rest(brokers: Brokers) -> None:
    await is_idle(brokers)
    brokers.append(1, "t")
    assert not brokers.replica(1, "t").member.is_idle
    await brokers.until(lambda: brokers.replica(1, "t").member.is_idle)


@pytest.mark.parametrize("replicas", [(3, 1, 2), (1, 2, 3)])
@simulated(broker_session_timeout_ms=6000)
async def test_a_replaced_disk_becomes_a_voter_in_place_of_the_old_one(
    brokers: Brokers, replicas: tuple[int, ...]
) -> None:
    """Machine 4 gets the broker id 3; the machine that had it, and its disk, do not come back."""
    await brokers.make_topic("t", replicas)
    leader = replicas[0]
    for _ in range(3):
        brokers.append(leader, "t")
    await brokers.elapse(1.0)
    brokers.kill(3)
    await brokers.until(lambda: 3 not in brokers[1].hosted.image.live)
    await brokers.start(4, broker_id=3)
    node = brokers[4]
    await brokers.until(lambda: bool(node.hosted.of_topic("t")))
    replica = brokers.replica(4, "t")
    await brokers.until(lambda: replica.log.end >= 3, within_seconds=30.0)
    await brokers.until(lambda: replica.me in replica.replica.voters and len(replica.replica.voters) == 3)
    await brokers.until(lambda: node.voter in node.metadata.replica.voters)
    assert not node.background.failed.done()


@with_cluster(leader_imbalance_check_interval_seconds=1)
async def test_leadership_is_not_moved_to_a_preferred_leader_that_has_just_died(cluster: Clustered) -> None:
    """Producers would wait until the transfer to the dead broker times out."""
    await cluster.make_topic("t", (2, 1, 3))
    await cluster[2].node.quorums.peers.close()
    others = [cluster.replica(broker, "t") for broker in (1, 3)]
    await until(lambda: any(one.leads for one in others))
    looked_at_least_once = asyncio.get_running_loop().time() + 1.5
    handed: list[bool] = []

    def time_is_up() -> bool:
        handed.extend(one.replica.hands_over for one in others)
        return asyncio.get_running_loop().time() > looked_at_least_once

    await until(time_is_up)
    assert not any(handed)
