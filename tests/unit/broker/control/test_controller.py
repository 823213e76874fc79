"""The controller adds replicas to internal topics that were created while the cluster had fewer than three brokers."""

from typing import Any

import pytest

from tailrace.broker.partitions.partition import Partition
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from tailrace.wire.messages.offset_fetch import GroupWanted, OffsetFetchRequest
from tests.unit.broker.simulated import Brokers, simulated

FEW: dict[str, Any] = {"offsets_topic_num_partitions": 4}
names = [f"g{number}" for number in range(8)]


async def coordinator(brokers: Brokers, group: str) -> int:
    """The coordinator of a group; brokers are asked in turn until one names it."""
    asked = 0
    while True:
        asked += 1
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
        (one,) = (await brokers.call(brokers.ids[asked % len(brokers.ids)], request, 6)).coordinators
        if one.error_code == 0 and one.node_id in brokers.ids:
            return int(one.node_id)
        await brokers.elapse(0.1)


async def commit(brokers: Brokers, group: str, offset: int) -> None:
    one = PartitionToCommit(partition=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(TopicToCommit(name="t", partitions=(one,)),),
    )
    answer = await brokers.call(await coordinator(brokers, group), request, 9)
    assert answer.topics[0].partitions[0].error_code == 0


async def committed(brokers: Brokers, group: str) -> int:
    request = OffsetFetchRequest(groups=(GroupWanted(group_id=group, topics=None),))
    while True:
        (one,) = (await brokers.call(await coordinator(brokers, group), request, 9)).groups
        if one.error_code == 0 and one.topics:
            return int(one.topics[0].partitions[0].committed_offset)
        await brokers.elapse(0.1)


def own(brokers: Brokers, broker: int) -> list[Partition]:
    return list(brokers[broker].hosted.of_topic(OFFSETS_TOPIC))


def are_wide(brokers: Brokers) -> bool:
    held = [one for broker in brokers.ids for one in own(brokers, broker)]
    return len(held) == 3 * FEW["offsets_topic_num_partitions"] and all(len(one.replica.voters) == 3 for one in held)


@pytest.mark.parametrize("power_loss", [False, True])
@simulated(count=1, auto_leader_rebalance_enable=True, **FEW)
async def test_committed_offsets_outlive_the_first_broker(brokers: Brokers, power_loss: bool) -> None:
    await brokers.make_topic("t", (1,))
    for number, name in enumerate(names):
        await commit(brokers, name, number)
    await brokers.start(2)
    await brokers.elapse(15.0)
    assert own(brokers, 2) == []  # of two replicas both are needed for a quorum: worse than one
    await brokers.start(3)
    await brokers.until(lambda: are_wide(brokers), within_seconds=90.0)
    led = [sum(one.leads for one in own(brokers, broker)) for broker in brokers.ids]
    await brokers.until(lambda: max(sum(one.leads for one in own(brokers, each)) for each in brokers.ids) <= 2, 60.0)
    assert sum(led) <= FEW["offsets_topic_num_partitions"]
    for name in names:
        await commit(brokers, name, 100)
    brokers.kill(1, power_loss=power_loss)
    for name in names:
        assert await committed(brokers, name) == 100
    await brokers.start(1)
    await brokers.until(lambda: are_wide(brokers), within_seconds=30.0)


async def grow_to_three(brokers: Brokers) -> None:
    """Two more brokers join the first one, which coordinates a group already, and get replicas of all its offsets."""
    await brokers.make_topic("t", (1,))
    await commit(brokers, "g0", 1)
    await brokers.start(2)
    await brokers.start(3)
    await brokers.until(lambda: are_wide(brokers), within_seconds=90.0)


@simulated(count=1, **FEW)
async def test_the_first_broker_does_not_disturb_leaders_when_it_comes_back(brokers: Brokers) -> None:
    """It once was the only voter; its log says that there are others now."""
    await grow_to_three(brokers)
    await brokers.stop(1)
    await brokers.until(lambda: all(one.leader in (2, 3) for one in own(brokers, 2)), within_seconds=20.0)
    epochs = [one.epoch for one in own(brokers, 2)]
    await brokers.start(1, serves=False)
    await brokers.elapse(3.0)
    assert [one.epoch for one in own(brokers, 2)] == epochs


@simulated(count=1, offsets_topic_replication_factor=1, **FEW)
async def test_a_replication_factor_of_one_is_kept(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    await commit(brokers, "g", 7)
    await brokers.start(2)
    await brokers.start(3)
    await brokers.elapse(15.0)
    assert [len(own(brokers, broker)) for broker in brokers.ids] == [4, 0, 0]


@simulated(count=1, log_checkpoint_interval_ms=500, **FEW)
async def test_the_first_broker_still_knows_the_other_voters_after_it_refetched_its_log(brokers: Brokers) -> None:
    """No record in the log names them: it starts after the records that added them."""
    await grow_to_three(brokers)
    for offset in range(5):
        for name in names:
            await commit(brokers, name, offset)
    number = next(index for index, one in enumerate(own(brokers, 1)) if one.log.end > 10)
    start = own(brokers, 1)[number].log.end - 5
    await brokers.until(lambda: all(own(brokers, each)[number].high_watermark > start for each in brokers.ids))
    for each in brokers.ids:
        await brokers.machine(each).run(own(brokers, each)[number].log.advance_start(start))
    folder = own(brokers, 1)[number].log.folder
    await brokers.stop(1)
    brokers.machine(1).storage.flip_bit(f"{folder}/{0:020d}.log", BATCH_HEADER_BYTES + 5)
    await brokers.start(1)
    await brokers.until(lambda: not own(brokers, 1)[number].log.refilling, within_seconds=30.0)
    assert own(brokers, 1)[number].log.start == start  # it was fetched again
    brokers.kill(1)
    await brokers.start(1, serves=False)
    assert len(own(brokers, 1)[number].replica.voters) == 3
