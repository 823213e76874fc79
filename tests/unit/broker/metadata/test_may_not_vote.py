"""Replicas that may have lost durable records: they neither vote nor count until they have caught up."""

from dataclasses import replace

import pytest

from tailrace.broker.node import Node
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.testing.simulation import Delay
from tests.unit.broker.simulated import KIND_ODDS, Brokers, simulated

far_apart = replace(KIND_ODDS, link=Delay(low_seconds=0.02, high_seconds=0.03))


def metadata_segment(node: Node) -> str:
    return f"{node.metadata.log.folder}/{0:020d}.log"


@pytest.mark.parametrize("again", [False, True])
@simulated(log_checkpoint_interval_ms=500)
async def test_a_founder_whose_metadata_is_damaged_does_not_lead_alone(brokers: Brokers, again: bool) -> None:
    """It was once the only voter, and its data directory still says so. `again`: it crashes while it catches up."""
    await brokers.make_topic("t", (2, 3, 1))
    path, end = metadata_segment(brokers[1]), brokers[1].metadata.log.end
    await brokers.stop(1)
    await brokers.until(lambda: any(brokers[one].is_controller for one in (2, 3)))
    brokers.machine(1).storage.flip_bit(path, BATCH_HEADER_BYTES + 5)
    if again:
        brokers.world.network.isolate("b1")
        await brokers.start(1, serves=False)
        await brokers.elapse(10)
        assert not brokers[1].metadata.leads
        brokers.kill(1)
        brokers.world.network.heal()
    await brokers.start(1)
    metadata = brokers[1].metadata
    await brokers.until(lambda: metadata.leader in (2, 3) and metadata.high_watermark >= end)
    await brokers.until(lambda: metadata.replica.may_vote)
    assert len(metadata.replica.voters) == 3
    assert "t" in brokers[1].hosted.image.topics
    assert all(brokers[one].metadata.offline is None for one in brokers.ids)


@simulated(fsync="never", odds=far_apart)
async def test_a_tail_that_its_leader_does_not_have_is_not_what_was_lost(brokers: Brokers) -> None:
    """After a power cut a replica has a longer log than its leader, which diverges: it must truncate and fetch."""
    await brokers.make_topic("t", (1, 2, 3))
    brokers.world.network.isolate("b1")
    for _ in range(20):
        brokers.append(1, "t")
    await brokers.machine(1).run(flushed(brokers, 1))
    brokers.kill(1, power_loss=True)
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in (2, 3)))
    leader = next(one for one in (2, 3) if brokers.replica(one, "t").leads)
    for _ in range(5):
        end = brokers.append(leader, "t")
    await brokers.until(lambda: brokers.replica(leader, "t").high_watermark == end)
    brokers.world.network.heal()
    await brokers.start(1, serves=False)
    await brokers.until(lambda: bool(brokers[1].hosted.of_topic("t")))
    replica = brokers.replica(1, "t")
    assert not replica.replica.may_vote
    assert replica.log.end > end
    await brokers.until(lambda: replica.replica.may_vote)
    assert replica.log.end >= end
    assert replica.log.epochs.last == brokers.replica(leader, "t").log.epochs.last


async def flushed(brokers: Brokers, broker: int) -> None:
    await brokers.replica(broker, "t").log.flush()
