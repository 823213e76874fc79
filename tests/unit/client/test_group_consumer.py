"""`GroupConsumer` of both protocols against the real coordinator, in simulation, while members and brokers die."""

import asyncio
import random
from typing import Any

import pytest

from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.group_application import (
    PARTITIONS,
    QUICK_GROUPS,
    Group,
    Protocol,
    both,
    make_topic,
    shared,
    with_group,
)


@with_group()
async def test_members_share_partitions(group: Group) -> None:
    source = group.source
    await source.produce(60)
    first = group.start("m1")
    await group.until_shared(first)
    second = group.start("m2")
    await group.until_shared(first, second)
    third = group.start("m3")
    await group.until_shared(first, second, third)
    await source.produce(60)
    await group.until_processed()
    await second.stop()
    await group.until_shared(first, third, within_seconds=1.5)  # it left: no session has to expire
    assert set(group.processed.values()) == {1}, "members that come and go in peace process nothing twice"


@with_group()
async def test_partitions_of_a_member_that_dies_move(group: Group) -> None:
    source = group.source
    first, second, third = (group.start(f"m{one}") for one in (1, 2, 3))
    await group.until_shared(first, second, third)
    await source.produce(60)
    await group.brokers.until(lambda: sum(group.processed.values()) > 10)
    await second.crash()
    await source.produce(60)
    await group.until_shared(first, third)
    await group.until_processed()


@with_group(count=3, offsets_topic_num_partitions=1)
async def test_members_go_on_when_the_coordinator_dies(group: Group) -> None:
    source = group.source
    first, second = (group.start(f"m{one}") for one in (1, 2))
    await group.until_shared(first, second)
    await source.produce(60)
    await group.until_processed()
    group.brokers.kill(group.coordinator)
    await source.produce(60)
    await group.until_processed()
    await first.stop()
    await group.until_shared(second)
    await second.stop()
    await source.check_that_all_is_committed()


@both
@pytest.mark.parametrize("seed", range(6))
def test_no_record_is_lost_in_a_storm(protocol: Protocol, seed: int) -> None:
    """Members die, come and leave, and each broker dies once, while records are produced."""

    @simulated(seed=seed, **QUICK_GROUPS)
    async def storm(brokers: Brokers) -> None:
        await make_topic(brokers)
        rng, group = random.Random(seed), Group(brokers, protocol)
        members = [group.start(f"m{one}") for one in (1, 2, 3)]
        for turn in range(1, 7):
            writing = asyncio.ensure_future(group.source.produce(40))
            await brokers.elapse(rng.choice([0.002, 0.02, 0.2, 1.5]))
            leaver = members.pop(rng.randrange(len(members)))
            await (leaver.crash() if rng.random() < 0.5 else leaver.stop())
            members.append(group.start(f"m{3 + turn}"))
            if turn % 2:
                broker = 1 + turn // 2
                brokers.kill(broker)
                await brokers.elapse(rng.uniform(0.1, 3.0))
                await brokers.start(broker)
            await writing
        await group.source.produce(40)
        await group.until_processed(within_seconds=60)
        await group.until_shared(*members, within_seconds=60)
        for one in members:
            await one.stop()
        await group.source.check_that_all_is_committed()

    storm()


@with_group(partitions=3)
async def test_partitions_that_are_added_are_read(group: Group) -> None:
    application = group.start("m1", topics_max_age_s=1.0)
    await group.brokers.until(lambda: len(application.assignment) == 3)
    grown = TopicToGrow(name="t", count=PARTITIONS, assignments=None)
    answer = await group.brokers.call(1, CreatePartitionsRequest(topics=(grown,), timeout_ms=5000), 3)
    assert answer.results[0].error_code == 0
    await group.until_shared(application)


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_a_topic_that_is_created_later_is_read(brokers: Brokers, protocol: Protocol) -> None:
    group = Group(brokers, protocol)
    application = group.start("m1")
    await brokers.elapse(3.0)
    await make_topic(brokers)
    await group.until_shared(application)


@with_group()
async def test_partitions_that_are_lost_before_they_are_read(group: Group) -> None:
    """The network breaks between an assignment and the look-up of its offsets, for longer than the session."""
    brokers = group.brokers
    first = group.start("m1")
    await brokers.until(lambda: first.is_assigned and not first.assignment)
    brokers.world.network.cut("m1", "b1")
    second = group.start("m2")
    await group.until_shared(second)
    brokers.world.network.heal()
    await group.until_shared(first, second)
    await brokers.elapse(1.0)
    assert shared(first, second)


@with_group(count=3, offsets_topic_num_partitions=1)
async def test_members_follow_a_coordinator_that_moves(group: Group) -> None:
    """The old one lives on, and says that it is the coordinator no more."""
    first, second = (group.start(f"m{one}") for one in (1, 2))
    await group.until_shared(first, second)
    brokers, before = group.brokers, group.coordinator
    others = [one for one in brokers.ids if one != before]
    for other in others:
        brokers.world.network.cut(f"b{before}", f"b{other}")
    await brokers.until(lambda: any(brokers.replica(one, "__consumer_offsets").leads for one in others))
    brokers.world.network.heal()
    await brokers.until(lambda: not brokers.replica(before, "__consumer_offsets").leads)
    await brokers.elapse(3.0)  # the new one would remove members that it has not heard from
    third = group.start("m3")
    await group.until_shared(first, second, third)
    await group.source.produce(60)
    await group.until_processed()
    for one in (first, second, third):
        await one.stop()
    await group.source.check_that_all_is_committed()


@simulated(count=1, **QUICK_GROUPS)
async def test_a_member_joins_again_as_soon_as_its_partitions_are_released(brokers: Brokers) -> None:
    await make_topic(brokers)
    group = Group(brokers, "classic")
    slow: dict[str, Any] = {"heartbeat_interval_ms": 1500, "session_timeout_ms": 6000}
    first = group.start("m1", **slow)
    await group.until_shared(first)
    second = group.start("m2", **slow)
    await group.until_shared(first, second, within_seconds=1.7)  # one heartbeat, not two
