"""Share coordinators in a cluster: state outlives its leaders, and what may not be written is refused everywhere."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tailrace.broker.queues.state_calls import RETRIED_FOR_S, ShareStates
from tailrace.broker.queues.state_coordinator import ShareCoordinator
from tailrace.cluster.features import METADATA_VERSION, SUPPORTED_FEATURES, LevelRange
from tailrace.model.faults import (
    CoordinatorUnavailable,
    Fault,
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    UnknownTopicId,
    UnsupportedVersion,
)
from tailrace.model.ids import Id
from tailrace.model.topics import SHARE_STATE_TOPIC
from tailrace.queues.state import DeliveryState, ShareKey, ShareState, StateBatch
from tailrace.records.opened import batches
from tailrace.wire.messages.update_features import FeatureToUpdate, UpdateFeaturesRequest
from tests.unit.broker.simulated import Brokers, simulated

T = TypeVar("T")
FEW: dict[str, Any] = {"share_coordinator_state_topic_num_partitions": 1}
TOPIC = Id(b"T" * 16)
KEY = ShareKey("g", TOPIC, 0)
BELOW = {**SUPPORTED_FEATURES, METADATA_VERSION: LevelRange(1, 2)}


async def at(brokers: Brokers, broker: int, work: Callable[[ShareStates], Awaitable[T]]) -> T:
    """Call the share coordinators from a broker."""

    async def run() -> T:
        return await work(brokers[broker].coordinators.share_states)

    found: T = await brokers.machine(broker).run(run())
    return found


async def write(states: ShareStates, *offsets: int, key: ShareKey = KEY, leader_epoch: int = 0) -> None:
    done = [StateBatch(offset, offset, DeliveryState.ACKNOWLEDGED, 1) for offset in offsets]
    await states.write(key, 1, leader_epoch, 0, len(done), done)


def offsets_of(state: ShareState) -> list[int]:
    return [offset for one in state.batches for offset in range(one.first, one.last + 1)]


def coordinating(brokers: Brokers) -> int:
    """The broker that leads the only partition of the state topic."""
    return next(one for one in brokers.ids if brokers.replica(one, SHARE_STATE_TOPIC).leads)


def shares(brokers: Brokers, broker: int) -> ShareCoordinator:
    return brokers[broker].coordinators.shares


@simulated(1)
async def test_one_broker_stores_reads_and_deletes(brokers: Brokers) -> None:
    await at(brokers, 1, lambda states: states.initialize(KEY, 1, 5))
    batch = StateBatch(7, 9, DeliveryState.AVAILABLE, 2, 1_700_000_000_000)
    await at(brokers, 1, lambda states: states.write(KEY, 1, 0, 6, 0, [batch]))
    brokers.kill(1, power_loss=True)
    await brokers.start(1)
    whole = ShareState(state_epoch=1, start=6, complete_count=0, batches=(batch,))
    assert await at(brokers, 1, lambda states: states.read(KEY, 1)) == whole
    summary = await at(brokers, 1, lambda states: states.summary(KEY))
    assert summary == ShareState(state_epoch=1, start=6, complete_count=0)
    await at(brokers, 1, lambda states: states.delete(KEY))
    assert await at(brokers, 1, lambda states: states.summary(KEY)) is None


@simulated()
async def test_every_broker_reaches_the_coordinator_of_every_share_partition(brokers: Brokers) -> None:
    keys = [ShareKey("g:h", TOPIC, number) for number in range(30)]
    batch = StateBatch(7, 9, DeliveryState.ARCHIVING, 2, 8)
    for number, key in enumerate(keys):
        await at(brokers, 1 + number % 3, lambda states, key=key: states.initialize(key, 1, 5))  # type: ignore[misc]
        await at(brokers, 1 + (number + 1) % 3, lambda states, key=key: states.write(key, 1, 0, 5, 0, [batch]))  # type: ignore[misc]
        found = await at(brokers, 1 + (number + 2) % 3, lambda states, key=key: states.read(key, 1))  # type: ignore[misc]
        assert found == ShareState(state_epoch=1, start=5, complete_count=0, batches=(batch,))
    used = [one for broker in brokers.ids for one in shares(brokers, broker).local_coordinators]
    assert len(used) == 12
    assert all(shares(brokers, broker).local_coordinators for broker in brokers.ids), "more than one broker was asked"


@simulated(**FEW)
async def test_refusals_of_another_broker_are_the_same_as_its_own(brokers: Brokers) -> None:
    await at(brokers, 1, lambda states: states.initialize(KEY, 1, 5))
    await at(brokers, 1, lambda states: states.read(KEY, 4))
    refused: tuple[tuple[type[Fault], Callable[[ShareStates], Awaitable[object]]], ...] = (
        (FencedLeaderEpoch, lambda states: states.read(KEY, 3)),
        (FencedLeaderEpoch, lambda states: write(states, 7, leader_epoch=3)),
        (FencedStateEpoch, lambda states: states.write(KEY, 0, 4, 5, 0, [])),
        (FencedStateEpoch, lambda states: states.initialize(KEY, 0, 5)),
        (InvalidRequest, lambda states: states.read(KEY._replace(partition=1), 3)),
        (InvalidRequest, lambda states: write(states, 7, 6, leader_epoch=4)),
    )
    for broker in brokers.ids:
        for fault, call in refused:
            begun = brokers.world.loop.time()
            with pytest.raises(fault):
                await at(brokers, broker, call)
            assert brokers.world.loop.time() - begun < 0.1, "it is not repeated"


@simulated(**FEW)
async def test_writes_of_one_turn_are_one_append(brokers: Brokers) -> None:
    await at(brokers, 1, lambda states: states.initialize(KEY, 1, 0))
    log = brokers.replica(coordinating(brokers), SHARE_STATE_TOPIC).log
    for broker in brokers.ids:
        before = log.end

        async def write_all(states: ShareStates) -> None:
            await asyncio.gather(*(write(states, 2 * number) for number in range(10)))

        await at(brokers, broker, write_all)
        read = log.read(before, 1_000_000, log.end)
        assert read is not None
        assert (log.end - before, len(list(batches(read.data)))) == (10, 1)


@simulated(**FEW)
async def test_a_state_of_many_batches_is_written_read_and_rewritten(brokers: Brokers) -> None:
    many = [StateBatch(2 * number, 2 * number, DeliveryState.AVAILABLE, 1, 9_000) for number in range(50_000)]
    await at(brokers, 1, lambda states: states.initialize(KEY, 1, 0))
    here = coordinating(brokers)
    there = next(one for one in brokers.ids if one != here)
    await at(brokers, there, lambda states: states.write(KEY, 1, 0, 0, 0, many))
    for _ in range(4):  # the log is four times as long as the live state
        await at(brokers, here, lambda states: states.write(KEY, 1, 0, 0, 1, []))
    coordinator, end = shares(brokers, here), brokers.replica(here, SHARE_STATE_TOPIC).log.end
    await brokers.machine(here).run(coordinator.shorten(coordinator.local(str(KEY)), at_least=1))
    await brokers.until(lambda: brokers.replica(there, SHARE_STATE_TOPIC).log.start == end)
    brokers.kill(here)
    assert (await at(brokers, there, lambda states: states.read(KEY, 0))).batches == tuple(many)


class Writer:
    """Writes one offset after the other, from one broker, and remembers those that were answered."""

    def __init__(self, brokers: Brokers, broker: int) -> None:
        self.written: list[int] = []
        self.is_over = False
        self.work = asyncio.ensure_future(at(brokers, broker, self._write))

    async def _write(self, states: ShareStates) -> None:
        while not self.is_over:
            offset = 2 * len(self.written)
            await write(states, offset)
            self.written.append(offset)

    async def stop(self) -> list[int]:
        self.is_over = True
        await self.work
        return self.written


@pytest.mark.parametrize("is_killed", [True, False])
def test_no_write_is_lost_when_the_leader_of_the_state_changes(is_killed: bool) -> None:
    @simulated(**FEW)
    async def change_leader(brokers: Brokers) -> None:
        await at(brokers, 1, lambda states: states.initialize(KEY, 1, 0))
        old = coordinating(brokers)
        here = next(one for one in brokers.ids if one != old)
        writer = Writer(brokers, here)
        await brokers.until(lambda: len(writer.written) > 20)
        if is_killed:
            brokers.kill(old, power_loss=True)
        else:
            await brokers.stop(old)
        count = len(writer.written)
        await brokers.until(lambda: len(writer.written) > count + 20 or writer.work.done())
        written = await writer.stop()
        found = await at(brokers, here, lambda states: states.read(KEY, 1))
        assert offsets_of(found) == written

    change_leader()


@simulated(**FEW)
async def test_a_new_leader_of_the_topic_fences_the_one_before_also_after_the_coordinator_has_changed(
    brokers: Brokers,
) -> None:
    await at(brokers, 1, lambda states: states.initialize(KEY, 1, 0))
    await at(brokers, 2, lambda states: states.read(KEY, 5))
    brokers.kill(coordinating(brokers), power_loss=True)
    with pytest.raises(FencedLeaderEpoch):
        await at(brokers, brokers.ids[0], lambda states: write(states, 1, leader_epoch=4))


@simulated(**FEW)
async def test_without_a_majority_calls_fail_when_their_time_is_over(brokers: Brokers) -> None:
    await at(brokers, 1, lambda states: states.initialize(KEY, 1, 0))
    brokers.kill(2)
    brokers.kill(3)
    begun = brokers.world.loop.time()
    with pytest.raises(CoordinatorUnavailable):
        await at(brokers, 1, lambda states: write(states, 1))
    assert RETRIED_FOR_S / 2 < brokers.world.loop.time() - begun < 2 * RETRIED_FOR_S


@simulated(**FEW)
async def test_a_log_that_has_become_long_begins_anew_and_says_the_same(brokers: Brokers) -> None:
    for number in range(3):
        await at(brokers, 1, lambda states, number=number: states.initialize(KEY._replace(partition=number), 1, 0))  # type: ignore[misc]
    for number in range(50):
        await at(brokers, 1, lambda states, number=number: write(states, 2 * number))  # type: ignore[misc]
    here = coordinating(brokers)
    log, coordinator = brokers.replica(here, SHARE_STATE_TOPIC).log, shares(brokers, here)
    end = log.end
    await brokers.machine(here).run(coordinator.shorten(coordinator.local(str(KEY)), at_least=10))
    await brokers.until(lambda: all(brokers.replica(one, SHARE_STATE_TOPIC).log.start == end for one in brokers.ids))
    assert log.end - end == 3, "a snapshot of each share partition"
    brokers.kill(here, power_loss=True)
    found = await at(brokers, brokers.ids[0], lambda states: states.read(KEY, 0))
    assert offsets_of(found) == [2 * number for number in range(50)]
    assert await at(brokers, brokers.ids[0], lambda states: states.summary(KEY._replace(partition=2))) is not None


@simulated(**FEW)
async def test_the_state_of_a_deleted_topic_is_deleted(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    deleted = ShareKey("g", brokers[1].hosted.image.topics["t"].id, 0)
    for key in (KEY, deleted):
        await at(brokers, 1, lambda states, key=key: states.initialize(key, 1, 0))  # type: ignore[misc]
    await brokers.delete_topic("t")
    here = coordinating(brokers)
    await brokers.until(lambda: deleted.topic_id in brokers[here].hosted.image.removed)
    with pytest.raises(UnknownTopicId):
        await at(brokers, 2, lambda states: states.initialize(deleted, 2, 0))
    assert await at(brokers, 2, lambda states: states.summary(deleted)) is None
    assert await at(brokers, 2, lambda states: states.summary(KEY)) is not None


@simulated(features=BELOW, **FEW)
async def test_below_level_3_every_call_is_refused_and_after_the_raise_none_is(brokers: Brokers) -> None:
    calls: tuple[Callable[[ShareStates], Awaitable[object]], ...] = (
        lambda states: states.initialize(KEY, 1, 0),
        lambda states: states.read(KEY, 0),
        lambda states: write(states, 1),
        lambda states: states.summary(KEY),
        lambda states: states.delete(KEY),
    )
    for broker in brokers.ids:
        await brokers.stop(broker)
        await brokers.start(broker)
    for broker in brokers.ids:
        for call in calls:
            with pytest.raises(UnsupportedVersion, match=r"share groups need metadata\.version 3, 2 is in force"):
                await at(brokers, broker, call)
    assert SHARE_STATE_TOPIC not in brokers[1].hosted.image.topics
    update = FeatureToUpdate(feature=METADATA_VERSION, max_version_level=3)
    answer = await brokers.call(1, UpdateFeaturesRequest(feature_updates=(update,)), 2)
    assert answer.error_code == 0
    await brokers.until(lambda: all(brokers[one].hosted.image.level == 3 for one in brokers.ids))
    for broker in brokers.ids:
        for call in calls:
            await at(brokers, broker, call)
