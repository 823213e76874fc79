"""Applications that read as members of a group, each on a simulated machine of its own, and a source of records."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

import pytest

from tailrace.client.faults import AssignmentLost
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.client.offsets import committed_offsets
from tailrace.client.producer import Producer
from tailrace.model.ids import PartitionName
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
QUICK_MEMBER: dict[str, Any] = {"session_timeout_ms": 2000, "heartbeat_interval_ms": 100}
both = pytest.mark.parametrize("protocol", ["classic", "consumer"])


class Application:
    """A process on a machine of its own that reads as a member of group g, and notes what it has processed."""

    def __init__(self, brokers: Brokers, name: str, processed: Counter[tuple[int, int]], **options: Any) -> None:
        self.name = name
        self.brokers = brokers
        self.processed = processed
        quick: dict[str, Any] = {**QUICK_MEMBER, "rebalance_timeout_ms": 5000, "commit_interval_s": 0.2}
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


class Group:
    """Group g and topic t that it reads: where its records come from, its members, and what they have processed."""

    def __init__(self, brokers: Brokers, protocol: Protocol) -> None:
        self.brokers = brokers
        self.protocol = protocol
        self.source = Source(brokers)
        self.processed: Counter[tuple[int, int]] = Counter()

    @property
    def coordinator(self) -> int:
        return next(one for one in self.brokers.ids if self.brokers.replica(one, "__consumer_offsets").leads)

    def start(self, name: str, **options: Any) -> Application:
        return Application(self.brokers, name, self.processed, protocol=self.protocol, **options)

    def consumer(self, name: str, **options: Any) -> tuple[SimulatedClient, GroupConsumer]:
        """A member that polls only when the test does."""
        client = SimulatedClient(self.brokers.world, "b1", name=name)
        quick = GroupOptions(protocol=self.protocol, **{**QUICK_MEMBER, **options})
        return client, GroupConsumer(client.cluster, "g", ["t"], quick)

    async def until_shared(self, *applications: Application, within_seconds: float = 20.0) -> None:
        await self.brokers.until(lambda: shared(*applications), within_seconds=within_seconds)

    def all_is_processed(self) -> bool:
        return all(self.processed[one] for one in self.source.written)

    async def until_processed(self, within_seconds: float = 20.0) -> None:
        await self.brokers.until(self.all_is_processed, within_seconds=within_seconds)


def with_group(
    count: int = 1, partitions: int = PARTITIONS, **settings: Any
) -> Callable[[Callable[[Group], Awaitable[None]]], Callable[..., None]]:
    """A test that gets a group on so many fresh brokers, in each of the two protocols."""

    def decorate(test: Callable[[Group], Awaitable[None]]) -> Callable[..., None]:
        async def play(brokers: Brokers, protocol: Protocol) -> None:
            await make_topic(brokers, partitions)
            await test(Group(brokers, protocol))

        play.__name__, play.__doc__, play.__module__ = test.__name__, test.__doc__, test.__module__
        run: Callable[..., None] = both(simulated(count=count, **QUICK_GROUPS, **settings)(play))
        return run

    return decorate
