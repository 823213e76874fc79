"""`GroupConsumer`: what it commits and when, and what an application sees that is slow, stuck or started twice."""

import asyncio
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
    QUICK_MEMBER,
    Group,
    make_topic,
    shared,
    with_group,
)
from tests.unit.client.simulated_client import SimulatedClient


@with_group(partitions=1)
async def test_what_the_last_poll_returned_is_not_committed(group: Group) -> None:
    """The application dies with an error while it processes records: the next member gets them again."""
    found = SimulatedClient(group.brokers.world, "b1")

    async def produce() -> None:
        async with Producer(found.cluster) as producer:
            for _ in range(10):
                await (await producer.send("t", b"x", partition=0))

    async def read(polls: int) -> list[int]:
        offsets: list[int] = []
        options = GroupOptions(protocol=group.protocol, **QUICK_MEMBER)
        async with GroupConsumer(found.cluster, "g", ["t"], options) as consumer:
            for _ in range(polls):
                offsets += [one.offset for one in await consumer.poll(max_records=3, timeout_s=20.0)]
        return offsets

    await found.run(produce())
    assert await found.run(read(polls=2)) == [0, 1, 2, 3, 4, 5]
    assert await found.run(read(polls=1)) == [3, 4, 5]
    assert await found.run(read(polls=3)) == [3, 4, 5, 6, 7, 8, 9]


@with_group()
async def test_a_commit_of_lost_partitions_is_refused(group: Group) -> None:
    """The application is away for longer than its session: it has lost its partitions, and commit says so."""
    brokers, source = group.brokers, group.source
    await source.produce(6)
    client, consumer = group.consumer("m1", commits_automatically=False)

    async def read(count: int) -> None:
        async with asyncio.timeout(20):
            while count > 0:
                count -= len(await consumer.poll())

    await client.run(read(6))
    await client.run(consumer.commit())
    await source.produce(6)
    await client.run(read(6))
    brokers.world.network.cut("m1", "b1")
    other = group.start("m2")
    await group.until_shared(other)
    brokers.world.network.heal()
    with pytest.raises(AssignmentLost, match="cannot commit offsets of"):
        await client.run(consumer.commit())
    await brokers.until(lambda: all(group.processed[one] for one in source.written[6:]))  # the other has them again
    await other.stop()
    await source.produce(6)
    await client.run(read(6))  # it has joined again, and goes on where the other had committed
    await client.run(consumer.commit())
    await client.run(consumer.close())
    committed = await source.client.run(committed_offsets(source.client.cluster, "g", EVERY))
    assert committed == dict.fromkeys(EVERY, 3)


@with_group()
async def test_a_member_whose_application_is_stuck_gives_way(group: Group) -> None:
    """It sends heartbeats, but does not poll within the rebalance timeout."""
    client, stuck = group.consumer("m1", rebalance_timeout_ms=3000)

    async def join() -> None:
        async with asyncio.timeout(20):
            while not stuck.assignment:
                await stuck.poll()

    await client.run(join())
    assert sorted(stuck.assignment) == EVERY
    other = group.start("m2")
    await group.brokers.elapse(2.0)
    assert sorted(stuck.assignment) == EVERY, "until then it may process records, and others wait"
    await group.until_shared(other, within_seconds=10)
    assert stuck.assignment == ()
    await client.run(join())
    await group.brokers.until(lambda: len(other.assignment) < PARTITIONS)
    await client.run(stuck.close())


@with_group()
async def test_a_static_member_restarts_without_a_rebalance(group: Group) -> None:
    first = group.start("m1")
    second = group.start("m2", instance_id="i")
    await group.until_shared(first, second)
    before = first.assignment, second.assignment
    await second.stop()
    await group.brokers.elapse(0.5)
    assert first.assignment == before[0]
    again = group.start("m3", instance_id="i")
    await group.brokers.until(lambda: bool(again.assignment))
    assert (first.assignment, again.assignment) == before
    await group.source.produce(60)
    await group.until_processed()


@with_group()
async def test_a_second_member_with_the_same_instance_id(group: Group) -> None:
    """A classic group fences the first of the two, a group of the consumer protocol refuses the second."""
    first = group.start("m1", instance_id="i")
    await group.until_shared(first)
    second = group.start("m2", instance_id="i")
    refused, why = (first, "FENCED_INSTANCE_ID") if group.protocol == "classic" else (second, "still in use")
    await group.brokers.until(refused.running.done)
    with pytest.raises(Refused, match=why):
        await refused.running


@with_group()
async def test_processed_records_are_committed_from_time_to_time(group: Group) -> None:
    source = group.source
    await source.produce(60)
    first = group.start("m1")
    await group.until_processed()
    await group.brokers.elapse(1.0)
    await first.crash()
    second = group.start("m2")
    await source.produce(60)
    await group.until_processed()
    assert shared(second)
    assert set(group.processed.values()) == {1}


@with_group()
async def test_commits_go_on_while_members_come_and_go(group: Group) -> None:
    """A commit may be on its way while the member's epoch rises: it is sent again with the new one."""
    processed = group.processed
    await group.source.produce(600)
    client, consumer = group.consumer("m1", commits_automatically=False)

    async def work() -> None:
        async with consumer, asyncio.timeout(60):
            while not group.all_is_processed():
                for record in await consumer.poll(max_records=1, timeout_s=0.1):
                    processed[record.partition.partition, record.offset] += 1
                await consumer.commit()

    working = asyncio.ensure_future(client.run(work()))
    for turn in range(8):
        other = group.start(f"m{2 + turn}")
        await group.brokers.until(lambda other=other: bool(other.assignment) or working.done())  # type: ignore[misc]
        await other.stop()
    await working
    assert set(processed.values()) == {1}


@simulated(count=1, **QUICK_GROUPS)
async def test_a_commit_is_sent_again_when_the_epoch_has_risen(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-848: a second member joins, which raises the epoch of the first, while a commit of the first is held up."""
    await make_topic(brokers, partitions=1)
    group = Group(brokers, "consumer")
    client, consumer = group.consumer("m1", commits_automatically=False)
    epochs: list[int] = []

    async def held_up(*given: Any, **member: Any) -> None:
        epochs.append(member["generation_id_or_member_epoch"])
        if len(epochs) == 1:
            group.start("m2")
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


@with_group()
async def test_a_member_leaves_while_it_waits_for_the_others(group: Group) -> None:
    client, first = group.consumer("m1")

    def epoch() -> int:
        identity = first._membership.identity
        return -1 if identity is None else identity.epoch

    async def poll(after: int) -> None:
        async with asyncio.timeout(20):
            while epoch() <= after or sorted(first.assignment) != EVERY:
                await first.poll(timeout_s=0.01)

    await client.run(poll(after=-1))
    before = epoch()
    second = group.start("m2")
    await group.brokers.elapse(1.0)  # the first does not come back: the second waits for its partitions
    clock = group.brokers.world.loop.time
    began = clock()
    await second.stop()
    assert clock() - began < 0.3, "it does not wait for the JoinGroup that the coordinator holds"
    began = clock()
    await client.run(poll(after=before))
    assert clock() - began < 1.0, "nobody waits for the member that has left"
    await client.run(first.close())
