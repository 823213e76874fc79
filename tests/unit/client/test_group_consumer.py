"""`GroupConsumer` of both protocols against the real coordinator, in simulation, while members and brokers die."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.group_application import (
    PARTITIONS,
    QUICK_GROUPS,
    Application,
    Protocol,
    Source,
    both,
    coordinator,
    make_topic,
    shared,
)


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_members_share_partitions(brokers: Brokers, protocol: Protocol) -> None:
    await make_topic(brokers)
    processed: Counter[tuple[int, int]] = Counter()
    source = Source(brokers)
    await source.produce(60)
    first = Application(brokers, "m1", processed, protocol=protocol)
    await brokers.until(lambda: shared(first))
    second = Application(brokers, "m2", processed, protocol=protocol)
    await brokers.until(lambda: shared(first, second))
    third = Application(brokers, "m3", processed, protocol=protocol)
    await brokers.until(lambda: shared(first, second, third))
    await source.produce(60)
    await brokers.until(lambda: all(processed[one] for one in source.written))
    await second.stop()
    await brokers.until(lambda: shared(first, third), within_seconds=1.5)  # it left: no session has to expire
    assert set(processed.values()) == {1}, "members that come and go in peace process nothing twice"


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_partitions_of_a_member_that_dies_move(brokers: Brokers, protocol: Protocol) -> None:
    await make_topic(brokers)
    processed: Counter[tuple[int, int]] = Counter()
    source = Source(brokers)
    first, second, third = (Application(brokers, f"m{one}", processed, protocol=protocol) for one in (1, 2, 3))
    await brokers.until(lambda: shared(first, second, third))
    await source.produce(60)
    await brokers.until(lambda: sum(processed.values()) > 10)
    await second.crash()
    await source.produce(60)
    await brokers.until(lambda: shared(first, third))
    await brokers.until(lambda: all(processed[one] for one in source.written))


@both
@simulated(offsets_topic_num_partitions=1, **QUICK_GROUPS)
async def test_members_go_on_when_the_coordinator_dies(brokers: Brokers, protocol: Protocol) -> None:
    await make_topic(brokers)
    processed: Counter[tuple[int, int]] = Counter()
    source = Source(brokers)
    first, second = (Application(brokers, f"m{one}", processed, protocol=protocol) for one in (1, 2))
    await brokers.until(lambda: shared(first, second))
    await source.produce(60)
    await brokers.until(lambda: all(processed[one] for one in source.written))
    brokers.kill(coordinator(brokers))
    await source.produce(60)
    await brokers.until(lambda: all(processed[one] for one in source.written))
    await first.stop()
    await brokers.until(lambda: shared(second))
    await second.stop()
    await source.check_that_all_is_committed()


@both
@pytest.mark.parametrize("seed", range(6))
def test_no_record_is_lost_in_a_storm(protocol: Protocol, seed: int) -> None:
    """Members die, come and leave, and each broker dies once, while records are produced."""

    @simulated(seed=seed, **QUICK_GROUPS)
    async def storm(brokers: Brokers) -> None:
        await make_topic(brokers)
        rng = random.Random(seed)
        processed: Counter[tuple[int, int]] = Counter()
        source = Source(brokers)
        members = [Application(brokers, f"m{one}", processed, protocol=protocol) for one in (1, 2, 3)]
        for turn in range(1, 7):
            writing = asyncio.ensure_future(source.produce(40))
            await brokers.elapse(rng.choice([0.002, 0.02, 0.2, 1.5]))
            leaver = members.pop(rng.randrange(len(members)))
            await (leaver.crash() if rng.random() < 0.5 else leaver.stop())
            members.append(Application(brokers, f"m{3 + turn}", processed, protocol=protocol))
            if turn % 2:
                broker = 1 + turn // 2
                brokers.kill(broker)
                await brokers.elapse(rng.uniform(0.1, 3.0))
                await brokers.start(broker)
            await writing
        await source.produce(40)
        await brokers.until(lambda: all(processed[one] for one in source.written), within_seconds=60)
        await brokers.until(lambda: shared(*members), within_seconds=60)
        for one in members:
            await one.stop()
        await source.check_that_all_is_committed()

    storm()


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_partitions_that_are_added_are_read(brokers: Brokers, protocol: Protocol) -> None:
    await make_topic(brokers, partitions=3)
    application = Application(brokers, "m1", Counter(), protocol=protocol, topics_max_age_s=1.0)
    await brokers.until(lambda: len(application.assignment) == 3)
    grown = TopicToGrow(name="t", count=PARTITIONS, assignments=None)
    answer = await brokers.call(1, CreatePartitionsRequest(topics=(grown,), timeout_ms=5000), 3)
    assert answer.results[0].error_code == 0
    await brokers.until(lambda: shared(application))


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_a_topic_that_is_created_later_is_read(brokers: Brokers, protocol: Protocol) -> None:
    application = Application(brokers, "m1", Counter(), protocol=protocol)
    await brokers.elapse(3.0)
    await make_topic(brokers)
    await brokers.until(lambda: shared(application))


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_partitions_that_are_lost_before_they_are_read(brokers: Brokers, protocol: Protocol) -> None:
    """The network breaks between an assignment and the look-up of its offsets, for longer than the session."""
    await make_topic(brokers)
    first = Application(brokers, "m1", Counter(), protocol=protocol)
    await brokers.until(lambda: first.is_assigned and not first.assignment)
    brokers.world.network.cut("m1", "b1")
    second = Application(brokers, "m2", Counter(), protocol=protocol)
    await brokers.until(lambda: shared(second))
    brokers.world.network.heal()
    await brokers.until(lambda: shared(first, second))
    await brokers.elapse(1.0)
    assert shared(first, second)


@both
@simulated(offsets_topic_num_partitions=1, **QUICK_GROUPS)
async def test_members_follow_a_coordinator_that_moves(brokers: Brokers, protocol: Protocol) -> None:
    """The old one lives on, and says that it is the coordinator no more."""
    await make_topic(brokers)
    processed: Counter[tuple[int, int]] = Counter()
    source = Source(brokers)
    first, second = (Application(brokers, f"m{one}", processed, protocol=protocol) for one in (1, 2))
    await brokers.until(lambda: shared(first, second))
    before = coordinator(brokers)
    others = [one for one in brokers.ids if one != before]
    for other in others:
        brokers.world.network.cut(f"b{before}", f"b{other}")
    await brokers.until(lambda: any(brokers.replica(one, "__consumer_offsets").leads for one in others))
    brokers.world.network.heal()
    await brokers.until(lambda: not brokers.replica(before, "__consumer_offsets").leads)
    await brokers.elapse(3.0)  # the new one would remove members that it has not heard from
    third = Application(brokers, "m3", processed, protocol=protocol)
    await brokers.until(lambda: shared(first, second, third))
    await source.produce(60)
    await brokers.until(lambda: all(processed[one] for one in source.written))
    for one in (first, second, third):
        await one.stop()
    await source.check_that_all_is_committed()


@simulated(count=1, **QUICK_GROUPS)
async def test_a_member_joins_again_as_soon_as_its_partitions_are_released(brokers: Brokers) -> None:
    await make_topic(brokers)
    slow: dict[str, Any] = {"heartbeat_interval_ms": 1500, "session_timeout_ms": 6000}
    first = Application(brokers, "m1", Counter(), **slow)
    await brokers.until(lambda: shared(first))
    second = Application(brokers, "m2", Counter(), **slow)
    await brokers.until(lambda: shared(first, second), within_seconds=1.7)  # one heartbeat, not two
