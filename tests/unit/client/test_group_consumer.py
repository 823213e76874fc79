"""`GroupConsumer` of both protocols against the real coordinator, in simulation, while members and brokers die."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from typing import Any, Literal

import pytest

from tailrace.client.faults import AssignmentLost, Refused
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.client.offsets import committed_offsets
from tailrace.client.producer import Producer
from tailrace.model.ids import PartitionName
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient

Protocol = Literal["classic", "consumer"]

PARTITIONS = 6
EVERY = [PartitionName("t", number) for number in range(PARTITIONS)]
QUICK_GROUPS: dict[str, Any] = {
    "group_min_session_timeout_ms": 100,
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_heartbeat_interval_ms": 100,
    "group_consumer_session_timeout_ms": 2000,
}
both = pytest.mark.parametrize("protocol", ["classic", "consumer"])


class Application:
    """A process on a machine of its own that reads as a member of group g, and notes what it has processed."""

    def __init__(self, brokers: Brokers, name: str, processed: Counter[tuple[int, int]], **options: Any) -> None:
        self.name = name
        self.brokers = brokers
        self.processed = processed
        quick: dict[str, Any] = {
            "session_timeout_ms": 2000,
            "heartbeat_interval_ms": 100,
            "rebalance_timeout_ms": 5000,
            "commit_interval_s": 0.2,
        }
        bootstrap = ",".join(f"b{one}" for one in brokers.ids)
        self.client = SimulatedClient(brokers.world, bootstrap, name=name)
        self.options = GroupOptions(**{**quick, **options})
        self.consumer: GroupConsumer | None = None
        self.stopping = False
        self.running = asyncio.ensure_future(self.client.run(self._run()))

    async def _run(self) -> None:
        async with GroupConsumer(self.client.cluster, "g", ["t"], self.options) as self.consumer:
            while not self.stopping:
                for record in await self.consumer.poll(max_records=5, timeout_s=0.3):
                    self.processed[record.partition.partition, record.offset] += 1
            with suppress(AssignmentLost):
                await self.consumer.commit()

    @property
    def assignment(self) -> tuple[PartitionName, ...]:
        return () if self.consumer is None else self.consumer.assignment

    @property
    def is_assigned(self) -> bool:
        """The coordinator has assigned partitions, which it may not read yet."""
        return self.consumer is not None and bool(self.consumer._membership.assignment)

    async def stop(self) -> None:
        self.stopping = True
        await self.running

    async def crash(self) -> None:
        """kill -9"""
        self.brokers.world.machine(self.name).crash(power_loss=False)
        await asyncio.gather(self.running, return_exceptions=True)
        self.consumer = None


async def make_topic(brokers: Brokers, partitions: int = PARTITIONS) -> None:
    replicas = min(3, len(brokers.ids))
    topic = NewTopic(name="t", num_partitions=partitions, replication_factor=replicas, assignments=(), configs=())
    answer = await brokers.call(brokers.ids[0], CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 7)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message


class Source:
    """Produces records to all partitions in turn."""

    def __init__(self, brokers: Brokers) -> None:
        self.client = SimulatedClient(brokers.world, ",".join(f"b{one}" for one in brokers.ids), name="p")
        self.written: list[tuple[int, int]] = []

    async def produce(self, count: int) -> None:
        async def work() -> None:
            async with Producer(self.client.cluster) as producer:
                sent = [await producer.send("t", b"x", partition=number % PARTITIONS) for number in range(count)]
                self.written += [(found.partition.partition, found.offset) for found in [await one for one in sent]]

        await self.client.run(work())

    async def check_that_all_is_committed(self) -> None:
        committed = await self.client.run(committed_offsets(self.client.cluster, "g", EVERY))
        ends = {one: 1 + max(offset for number, offset in self.written if number == one.partition) for one in EVERY}
        assert committed == ends


def shared(*applications: Application) -> bool:
    """Whether these own every partition, each of them once, and each application some."""
    owned = [one for application in applications for one in application.assignment]
    return sorted(owned) == EVERY and all(application.assignment for application in applications)


def coordinator(brokers: Brokers) -> int:
    return next(one for one in brokers.ids if brokers.replica(one, "__consumer_offsets").leads)


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
    await source.produce(60)
    await brokers.until(lambda: all(processed[one] for one in source.written))
    await first.stop()
    await brokers.until(lambda: shared(second), within_seconds=1.5)
    await second.stop()
    await source.check_that_all_is_committed()


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
    await second.stop()
    began = brokers.world.loop.time()
    await client.run(poll(after=before))
    assert brokers.world.loop.time() - began < 1.0, "nobody waits for the member that has left"
    await client.run(first.close())


@simulated(count=1, **QUICK_GROUPS)
async def test_a_member_joins_again_as_soon_as_its_partitions_are_released(brokers: Brokers) -> None:
    await make_topic(brokers)
    slow: dict[str, Any] = {"heartbeat_interval_ms": 1500, "session_timeout_ms": 6000}
    first = Application(brokers, "m1", Counter(), **slow)
    await brokers.until(lambda: shared(first))
    second = Application(brokers, "m2", Counter(), **slow)
    await brokers.until(lambda: shared(first, second), within_seconds=1.7)  # one heartbeat, not two
