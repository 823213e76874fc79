"""`GroupConsumer`: what it commits and when, and what an application sees that is slow, stuck or started twice."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tailrace.client.faults import AssignmentLost, Refused
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.client.offsets import commit_offsets, committed_offsets
from tailrace.client.producer import Producer
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.group_application import (
    EVERY,
    PARTITIONS,
    QUICK_GROUPS,
    Application,
    Protocol,
    Source,
    both,
    make_topic,
    shared,
)
from tests.unit.client.simulated_client import SimulatedClient


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_what_the_last_poll_returned_is_not_committed(brokers: Brokers, protocol: Protocol) -> None:
    """The application dies with an error while it processes records: the next member gets them again."""
    await make_topic(brokers, partitions=1)
    found = SimulatedClient(brokers.world, "b1")

    async def produce() -> None:
        async with Producer(found.cluster) as producer:
            for _ in range(10):
                await (await producer.send("t", b"x", partition=0))

    async def read(polls: int) -> list[int]:
        offsets: list[int] = []
        options = GroupOptions(protocol=protocol, heartbeat_interval_ms=100, session_timeout_ms=2000)
        async with GroupConsumer(found.cluster, "g", ["t"], options) as consumer:
            for _ in range(polls):
                offsets += [one.offset for one in await consumer.poll(max_records=3, timeout_s=20.0)]
        return offsets

    await found.run(produce())
    assert await found.run(read(polls=2)) == [0, 1, 2, 3, 4, 5]
    assert await found.run(read(polls=1)) == [3, 4, 5]
    assert await found.run(read(polls=3)) == [3, 4, 5, 6, 7, 8, 9]


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_a_commit_of_lost_partitions_is_refused(brokers: Brokers, protocol: Protocol) -> None:
    """The application is away for longer than its session: it has lost its partitions, and commit says so."""
    await make_topic(brokers)
    source = Source(brokers)
    await source.produce(6)
    client = SimulatedClient(brokers.world, "b1", name="m1")
    options = GroupOptions(
        protocol=protocol, heartbeat_interval_ms=100, session_timeout_ms=2000, commits_automatically=False
    )
    consumer = GroupConsumer(client.cluster, "g", ["t"], options)

    async def read(count: int) -> None:
        async with asyncio.timeout(20):
            while count > 0:
                count -= len(await consumer.poll())

    await client.run(read(6))
    await client.run(consumer.commit())
    await source.produce(6)
    await client.run(read(6))
    processed: Counter[tuple[int, int]] = Counter()
    brokers.world.network.cut("m1", "b1")
    other = Application(brokers, "m2", processed, protocol=protocol)
    await brokers.until(lambda: shared(other))
    brokers.world.network.heal()
    with pytest.raises(AssignmentLost, match="cannot commit offsets of"):
        await client.run(consumer.commit())
    await brokers.until(lambda: all(processed[one] for one in source.written[6:]))  # the other has them again
    await other.stop()
    await source.produce(6)
    await client.run(read(6))  # it has joined again, and goes on where the other had committed
    await client.run(consumer.commit())
    await client.run(consumer.close())
    committed = await source.client.run(committed_offsets(source.client.cluster, "g", EVERY))
    assert committed == dict.fromkeys(EVERY, 3)


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_a_member_whose_application_is_stuck_gives_way(brokers: Brokers, protocol: Protocol) -> None:
    """It sends heartbeats, but does not poll within the rebalance timeout."""
    await make_topic(brokers)
    client = SimulatedClient(brokers.world, "b1", name="m1")
    options = GroupOptions(
        protocol=protocol, heartbeat_interval_ms=100, session_timeout_ms=2000, rebalance_timeout_ms=3000
    )
    stuck = GroupConsumer(client.cluster, "g", ["t"], options)

    async def join() -> None:
        async with asyncio.timeout(20):
            while not stuck.assignment:
                await stuck.poll()

    await client.run(join())
    assert sorted(stuck.assignment) == EVERY
    other = Application(brokers, "m2", Counter(), protocol=protocol)
    await brokers.elapse(2.0)
    assert sorted(stuck.assignment) == EVERY, "until then it may process records, and others wait"
    await brokers.until(lambda: shared(other), within_seconds=10)
    assert stuck.assignment == ()
    await client.run(join())
    await brokers.until(lambda: len(other.assignment) < PARTITIONS)
    await client.run(stuck.close())


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_a_static_member_restarts_without_a_rebalance(brokers: Brokers, protocol: Protocol) -> None:
    await make_topic(brokers)
    processed: Counter[tuple[int, int]] = Counter()
    source = Source(brokers)
    first = Application(brokers, "m1", processed, protocol=protocol)
    second = Application(brokers, "m2", processed, protocol=protocol, instance_id="i")
    await brokers.until(lambda: shared(first, second))
    before = first.assignment, second.assignment
    await second.stop()
    await brokers.elapse(0.5)
    assert first.assignment == before[0]
    again = Application(brokers, "m3", processed, protocol=protocol, instance_id="i")
    await brokers.until(lambda: bool(again.assignment))
    assert (first.assignment, again.assignment) == before
    await source.produce(60)
    await brokers.until(lambda: all(processed[one] for one in source.written))


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_a_second_member_with_the_same_instance_id(brokers: Brokers, protocol: Protocol) -> None:
    """A classic group fences the first of the two, a group of the consumer protocol refuses the second."""
    await make_topic(brokers)
    first = Application(brokers, "m1", Counter(), protocol=protocol, instance_id="i")
    await brokers.until(lambda: shared(first))
    second = Application(brokers, "m2", Counter(), protocol=protocol, instance_id="i")
    refused, why = (first, "FENCED_INSTANCE_ID") if protocol == "classic" else (second, "still in use")
    await brokers.until(refused.running.done)
    with pytest.raises(Refused, match=why):
        await refused.running


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_processed_records_are_committed_from_time_to_time(brokers: Brokers, protocol: Protocol) -> None:
    await make_topic(brokers)
    processed: Counter[tuple[int, int]] = Counter()
    source = Source(brokers)
    await source.produce(60)
    first = Application(brokers, "m1", processed, protocol=protocol)
    await brokers.until(lambda: all(processed[one] for one in source.written))
    await brokers.elapse(1.0)
    await first.crash()
    second = Application(brokers, "m2", processed, protocol=protocol)
    await source.produce(60)
    await brokers.until(lambda: all(processed[one] for one in source.written))
    assert shared(second)
    assert set(processed.values()) == {1}


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_commits_go_on_while_members_come_and_go(brokers: Brokers, protocol: Protocol) -> None:
    """A commit may be on its way while the member's epoch rises: it is sent again with the new one."""
    await make_topic(brokers)
    source = Source(brokers)
    await source.produce(600)
    client = SimulatedClient(brokers.world, "b1", name="m1")
    processed: Counter[tuple[int, int]] = Counter()
    options = GroupOptions(
        protocol=protocol, heartbeat_interval_ms=100, session_timeout_ms=2000, commits_automatically=False
    )

    async def work() -> None:
        async with GroupConsumer(client.cluster, "g", ["t"], options) as consumer, asyncio.timeout(60):
            while not all(processed[one] for one in source.written):
                for record in await consumer.poll(max_records=1, timeout_s=0.1):
                    processed[record.partition.partition, record.offset] += 1
                await consumer.commit()

    working = asyncio.ensure_future(client.run(work()))
    for turn in range(8):
        other = Application(brokers, f"m{2 + turn}", processed, protocol=protocol)
        await brokers.until(lambda other=other: bool(other.assignment) or working.done())  # type: ignore[misc]
        await other.stop()
    await working
    assert set(processed.values()) == {1}


@simulated(count=1, **QUICK_GROUPS)
async def test_a_commit_is_sent_again_when_the_epoch_has_risen(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-848: a second member joins, which raises the epoch of the first, while a commit of the first is held up."""
    await make_topic(brokers, partitions=1)
    client = SimulatedClient(brokers.world, "b1", name="m1")
    options = GroupOptions(protocol="consumer", commits_automatically=False)
    consumer = GroupConsumer(client.cluster, "g", ["t"], options)
    epochs: list[int] = []

    async def held_up(*given: Any, **member: Any) -> None:
        epochs.append(member["generation_id_or_member_epoch"])
        if len(epochs) == 1:
            Application(brokers, "m2", Counter(), protocol="consumer")
            identity = consumer._membership.identity
            assert identity is not None
            assert await consumer._membership.identity_after(identity, 10.0) is not None
        await commit_offsets(*given, **member)

    async def work() -> None:
        async with asyncio.timeout(20):
            while not consumer.assignment:
                await consumer.poll(timeout_s=0.1)
        await consumer.commit()
        await consumer.close()

    monkeypatch.setattr("tailrace.client.group_consumer.commit_offsets", held_up)
    await client.run(work())
    assert len(epochs) == 2
    assert epochs[0] < epochs[1]


@both
@simulated(count=1, **QUICK_GROUPS)
async def test_a_member_leaves_while_it_waits_for_the_others(brokers: Brokers, protocol: Protocol) -> None:
    await make_topic(brokers)
    client = SimulatedClient(brokers.world, "b1", name="m1")
    options = GroupOptions(protocol=protocol, heartbeat_interval_ms=100, session_timeout_ms=2000)
    first = GroupConsumer(client.cluster, "g", ["t"], options)

    def epoch() -> int:
        identity = first._membership.identity
        return -1 if identity is None else identity.epoch

    async def poll(after: int) -> None:
        async with asyncio.timeout(20):
            while epoch() <= after or sorted(first.assignment) != EVERY:
                await first.poll(timeout_s=0.01)

    await client.run(poll(after=-1))
    before = epoch()
    second = Application(brokers, "m2", Counter(), protocol=protocol)
    await brokers.elapse(1.0)  # the first does not come back: the second waits for its partitions
    began = brokers.world.loop.time()
    await second.stop()
    assert brokers.world.loop.time() - began < 0.3, "it does not wait for the JoinGroup that the coordinator holds"
    began = brokers.world.loop.time()
    await client.run(poll(after=before))
    assert brokers.world.loop.time() - began < 1.0, "nobody waits for the member that has left"
    await client.run(first.close())
