"""`tailrace.client.taking` against real brokers in simulation: what is taken, counted and shown, and that no message is
given twice while leaders die."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

import pytest

from tailrace.client.admin import change_group_settings, create_partitions, create_topics, group_settings
from tailrace.client.batching import BatchLimits
from tailrace.client.cluster import Limits
from tailrace.client.faults import Busy, ClientError, NoSuchPartition, NotAcknowledged, OutcomeUnknown, Refused
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.client.share_admin import describe_share_group
from tailrace.client.shares.message import Message
from tailrace.client.taking import Taker, Takers, TakingLimits, TooManyTakers
from tailrace.wire.messages.create_topics import NewTopic, ReplicaAssignment
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient

T = TypeVar("T")
SINGLE = BatchLimits(batch_bytes=1)  # every record is a batch of its own
TEMPORARY = (Busy, NotAcknowledged)


async def taking(
    brokers: Brokers,
    work: Callable[[Takers], Awaitable[T]],
    name: str = "door",
    bootstrap: str = "b1",
    limits: TakingLimits = TakingLimits(),  # noqa: B008
) -> T:
    """Work with takers on a machine of their own, which asks this broker first."""
    client = SimulatedClient(brokers.world, bootstrap, Limits(request_s=3.0, retry_s=20.0), name)

    async def run() -> T:
        takers = Takers(client.cluster, limits)
        try:
            return await work(takers)
        finally:
            await takers.close()
            client.cluster.close()

    return await client.run(run())


async def make(takers: Takers, topic: str = "t", leaders: tuple[int, ...] = (1,), replicas: int = 1) -> None:
    places = tuple(
        ReplicaAssignment(partition=number, broker_ids=tuple((leader - 1 + nth) % 3 + 1 for nth in range(replicas)))
        for number, leader in enumerate(leaders)
    )
    new = NewTopic(name=topic, num_partitions=-1, replication_factor=-1, assignments=places)
    assert await create_topics(takers.cluster, [new]) == {topic: None}


async def send(takers: Takers, *values: str, partition: int = 0, topic: str = "t") -> None:
    async with Producer(takers.cluster, ProducerOptions(limits=SINGLE)) as producer:
        for value in values:
            await (await producer.send(topic, value.encode(), partition=partition))


async def finish(taker: Taker, partition: int | None = None) -> str | None:
    """Take and accept one message."""
    message = await taker.take(partition)
    if message is None:
        return None
    await taker.accept(message)
    return text(message)


async def finish_all(taker: Taker) -> list[str]:
    found = []
    while (value := await finish(taker)) is not None:
        found.append(value)
    return found


def text(message: Message | None) -> str:
    assert message is not None
    return (message.value or b"").decode()


@simulated(count=1)
async def test_messages_are_taken_one_by_one_in_order(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a", "b", "c")
        taker = takers.of("g", "t")
        assert takers.of("g", "t") is not None
        assert await finish_all(taker) == ["a", "b", "c"]
        assert await taker.take() is None
        await send(takers, "d")
        assert await finish(taker) == "d"

    await taking(brokers, work)


@simulated(count=1)
async def test_a_group_is_set_up_once_and_needs_no_members(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        taker = takers.of("g", "t")
        assert await taker.take() is None
        found = {one.name: one.value for one in await group_settings(takers.cluster, "g")}
        assert found["share.auto.offset.reset"] == "earliest"
        assert found["share.isolation.level"] == "read_committed"
        assert found["share.partition.max.record.locks"] == "1"
        assert found["share.delivery.count.limit"] == "0"
        group = await describe_share_group(takers.cluster, "g")
        assert group is not None
        assert group.members == ()

        await change_group_settings(takers.cluster, "g", {"share.delivery.count.limit": "7"})
        takers.preparation.forget("g", "t")
        assert await taker.take() is None
        found = {one.name: one.value for one in await group_settings(takers.cluster, "g")}
        assert found["share.delivery.count.limit"] == "7"  # an administrator's change stays

    await taking(brokers, work)


@simulated(count=1)
async def test_the_settings_of_a_queue_are_left_alone(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a", "b")
        await change_group_settings(takers.cluster, "g", {"share.auto.offset.reset": "earliest"})
        taker = takers.of("g", "t", sets_up=False)
        first, second = await taker.take(), await taker.take()  # several messages of a partition
        assert (text(first), text(second)) == ("a", "b")
        assert await taker.take() is None  # what is locked is not waited for
        assert first is not None
        assert second is not None
        await taker.accept(second)
        await taker.release(first)
        assert text(await taker.take()) == "a"
        found = {one.name: one.value for one in await group_settings(takers.cluster, "g")}
        assert found["share.delivery.count.limit"] == "5"

    await taking(brokers, work)


@simulated(count=1)
async def test_released_messages_come_again_and_rejected_ones_do_not(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a", "b")
        taker = takers.of("g", "t")
        for deliveries in range(1, 31):  # there is no limit
            message = await taker.take()
            assert text(message) == "a"
            assert message is not None
            assert message.delivery_count == deliveries
            await taker.release(message)
        message = await taker.take()
        assert message is not None
        await taker.reject(message)
        with pytest.raises(NotAcknowledged, match="settled before"):
            await taker.accept(message)
        assert await finish_all(taker) == ["b"]

    await taking(brokers, work)


@simulated()
async def test_all_partitions_are_taken_from_wherever_their_leaders_are(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers, leaders=(1, 2, 3, 1))
        for number in range(4):
            await send(takers, f"a{number}", f"b{number}", partition=number)
        taker = takers.of("g", "t")
        assert await finish(taker, 2) == "a2"
        found = await finish_all(taker)
        assert sorted(found[:4]) == ["a0", "a1", "a3", "b2"]  # each partition has its turn
        assert sorted(found) == ["a0", "a1", "a3", "b0", "b1", "b2", "b3"]
        assert await taker.take(1) is None
        with pytest.raises(NoSuchPartition, match="find partition 4 of topic t"):
            await taker.take(4)

    await taking(brokers, work)


@simulated()
async def test_two_takers_at_different_brokers_get_different_messages(brokers: Brokers) -> None:
    both = asyncio.Barrier(2)

    async def one(takers: Takers) -> list[str]:
        taker = takers.of("g", "t")
        assert await taker.unread() == 40
        await both.wait()
        return await finish_all(taker)

    async def prepare(takers: Takers) -> None:
        await make(takers, leaders=(3,))
        await send(takers, *map(str, range(40)))

    await taking(brokers, prepare)
    first, second = await asyncio.gather(taking(brokers, one, "door1", "b1"), taking(brokers, one, "door2", "b2"))
    assert sorted(map(int, first + second)) == list(range(40))
    assert first == sorted(first, key=int)
    assert first
    assert second


@simulated(count=1)
async def test_what_another_taker_has_locked_is_waited_for(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a")
        message = await takers.of("g", "t").take()
        assert message is not None

        async def other(others: Takers) -> str | None:
            taker = others.of("g", "t")
            with pytest.raises(Busy, match="locked by other takers"):
                await taker.take()
            began = others.cluster.driver.now()
            waiting = asyncio.ensure_future(finish(taker))
            await asyncio.sleep(0.5)
            await takers.of("g", "t").release(message)
            found = await waiting
            assert others.cluster.driver.now() - began < 1.5
            return found

        assert await taking(brokers, other, "other") == "a"

    await taking(brokers, work, limits=TakingLimits(locked_s=2.0))


@simulated(count=1)
async def test_many_callers_share_one_partition(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, *map(str, range(30)))
        taker = takers.of("g", "t")
        found = await asyncio.gather(*(finish(taker) for _ in range(50)))
        assert [one for one in found if one is not None] == list(map(str, range(30)))
        assert found[30:] == [None] * 20

    await taking(brokers, work)


@simulated(count=1)
async def test_a_caller_that_gives_up_locks_nothing(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a", "b")
        taker = takers.of("g", "t")
        assert await finish(taker) == "a"
        for steps in range(40):
            call = asyncio.ensure_future(taker.take())
            for _ in range(steps):
                await asyncio.sleep(0.0001)
            call.cancel()
            for one in await asyncio.gather(call, return_exceptions=True):
                if isinstance(one, Message):
                    await taker.release(one)
            assert taker.is_idle
        assert await finish(taker) == "b"

    await taking(brokers, work)


@simulated(count=1)
async def test_take_waits_for_a_message(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        taker = takers.of("g", "t")
        now = takers.cluster.driver.now
        began = now()
        assert await taker.take(wait_s=0.7) is None
        assert 0.6 < now() - began < 1.2
        calls = [asyncio.ensure_future(taker.take(wait_s=20.0)) for _ in range(3)]
        await asyncio.sleep(0.5)
        await send(takers, "a")
        done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        (found,) = (one.result() for one in done)
        assert text(found) == "a"
        assert len(waiting) == 2
        for call in waiting:
            call.cancel()

    await taking(brokers, work)


@simulated(count=1)
async def test_peek_and_unread_change_nothing_and_count_messages(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        taker = takers.of("g", "t")
        assert (await taker.peek(), await taker.unread()) == (None, 0)
        options = ProducerOptions(transactional_id="x")
        async with Producer(takers.cluster, options) as producer:
            for word in ("aborted", "a", "b"):
                await producer.begin()
                await (await producer.send("t", word.encode(), partition=0))
                await (producer.abort() if word == "aborted" else producer.commit())
        await send(takers, "c")
        for left, value in ((3, "a"), (2, "b"), (1, "c")):
            for _ in range(2):
                shown = await taker.peek(0)
                assert shown is not None
                assert (shown.value or b"").decode() == value
                assert await taker.unread() == left
            message = await taker.take()
            assert await taker.unread() == left  # it is not finished yet
            assert text(message) == value
            assert message is not None
            await taker.accept(message)
        assert (await taker.peek(), await taker.unread()) == (None, 0)
        assert await takers.of("another", "t").unread() == 3

    await taking(brokers, work)


@simulated(count=1)
async def test_new_partitions_are_found(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        taker = takers.of("g", "t")
        assert await taker.take() is None
        await create_partitions(takers.cluster, "t", 3)
        await send(takers, "a", partition=2)
        await asyncio.sleep(takers.limits.topic_max_age_s)
        assert await finish(taker) == "a"

    await taking(brokers, work)


@simulated(count=1)
async def test_a_topic_that_is_made_again(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a")
        taker = takers.of("g", "t")
        assert await finish(taker) == "a"
        await brokers.delete_topic("t")
        with pytest.raises(Refused, match="UNKNOWN_TOPIC"):
            await taker.take()
        await make(takers)
        await send(takers, "b")
        assert await finish(taker) == "b"

    await taking(brokers, work)


@simulated(count=1)
async def test_takers_are_bounded_and_idle_ones_are_closed(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a")
        held = await takers.of("g0", "t").take()
        assert held is not None
        other = await takers.of("g1", "t").take()
        assert other is not None
        with pytest.raises(TooManyTakers, match="2 takers are in use"):
            await takers.of("g2", "t").take()
        await takers.of("g1", "t").accept(other)
        for number in range(2, 12):  # one after the other, in place of those before
            assert await finish_all(takers.of(f"g{number}", "t")) == ["a"]
        assert len(takers) == 2
        await takers.of("g0", "t").accept(held)
        await asyncio.sleep(3 * takers.limits.idle_s)
        assert len(takers) == 0
        assert await takers.of("g1", "t").take() is None

    await taking(brokers, work, limits=TakingLimits(takers=2, idle_s=2.0))


@simulated(count=1)
async def test_a_lock_that_ends_lets_others_go_on(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers)
        await send(takers, "a", "b")
        taker = takers.of("g", "t")
        assert await taker.unread() == 2
        await change_group_settings(takers.cluster, "g", {"share.record.lock.duration.ms": "1000"})
        message = await taker.take()
        assert message is not None
        await asyncio.sleep(1.5)
        assert await finish(taker) == "a"
        with pytest.raises(NotAcknowledged, match="lock has ended"):
            await taker.accept(message)

    await taking(brokers, work)


@simulated()
async def test_a_leader_that_cannot_be_asked_is_not_an_empty_one(brokers: Brokers) -> None:
    async def work(takers: Takers) -> None:
        await make(takers, leaders=(1, 3))
        await send(takers, "a", "b")
        taker = takers.of("g", "t")
        assert await finish(taker) == "a"
        brokers.kill(3)
        assert await finish(taker) == "b"  # from the other one
        with pytest.raises(ClientError, match="cannot take a message"):
            await taker.take()

    await taking(brokers, work, limits=TakingLimits(retry_s=3.0))


@simulated(seed=100)
async def test_no_message_is_given_twice_or_lost_when_a_leader_dies(brokers: Brokers) -> None:
    await under_faults(brokers, Random(1), messages=15, deaths=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_no_message_is_given_twice_or_lost_while_leaders_die(seed: int) -> None:
    @simulated(seed=100 + seed)
    async def check(brokers: Brokers) -> None:
        await under_faults(brokers, Random(seed), messages=60, deaths=4)

    check()


async def under_faults(brokers: Brokers, random: Random, messages: int, deaths: int) -> None:
    """Two doors take from three partitions, whose leaders die. Given is what was accepted for certain."""
    given: list[tuple[int, int]] = []  # partition and number, as they were given
    unknown: list[tuple[int, int]] = []
    written: list[tuple[int, int]] = []
    is_over = asyncio.Event()

    async def prepare(takers: Takers) -> None:
        await make(takers, leaders=(1, 2, 3), replicas=3)

    async def produce(takers: Takers) -> None:
        async with Producer(takers.cluster, ProducerOptions(limits=SINGLE)) as producer:
            for number in range(messages):
                place = number % 3
                await (await producer.send("t", str(number).encode(), partition=place))
                written.append((place, number))
                await asyncio.sleep(0.15)

    async def caller(takers: Takers) -> None:
        taker = takers.of("g", "t")
        while True:
            try:
                message = await taker.take(wait_s=0.2)
                if message is None:
                    if is_over.is_set():
                        return
                    continue
                key = (message.partition.partition, int(text(message)))
                await taker.accept(message)
                given.append(key)
            except OutcomeUnknown:
                unknown.append(key)
            except ClientError:
                await asyncio.sleep(0.1)

    async def door(takers: Takers) -> None:
        await asyncio.gather(*(caller(takers) for _ in range(3)))

    await taking(brokers, prepare, "admin", "b1,b2,b3")
    limits = TakingLimits(retry_s=4.0)
    doors = [asyncio.ensure_future(taking(brokers, door, f"door{one}", f"b{one},b3", limits)) for one in (1, 2)]
    producing = asyncio.ensure_future(taking(brokers, produce, "producer", "b1,b2,b3"))
    for _ in range(deaths):
        await brokers.elapse(random.uniform(0.5, 2.0))
        victim = random.choice((1, 2, 3))
        brokers.kill(victim, power_loss=random.random() < 0.5)
        await brokers.elapse(random.uniform(0.1, 2.0))
        await brokers.start(victim)
        for one in (1, 2):
            brokers.world.network.reset(f"door{one}", f"b{random.choice((1, 2, 3))}")
    await producing
    is_over.set()
    await asyncio.gather(*doors)
    assert len(given) == len(set(given)), "a message was given twice"
    assert set(written) - set(given) <= set(unknown), "a message is lost"
    assert len(given) >= messages * 2 // 3
    for place in range(3):
        order = [number for at, number in given if at == place]
        assert order == sorted(order)
