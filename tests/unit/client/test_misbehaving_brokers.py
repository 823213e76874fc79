"""`tailrace.client` against brokers that misbehave by seed: a clear fault or a result, within the deadline."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Literal

import pytest

from tailrace.client.batching import BatchLimits
from tailrace.client.cluster import Limits
from tailrace.client.consumer import Consumer
from tailrace.client.faults import ClientError, NotAcknowledged
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.client.offsets import LATEST, commit_offsets, offsets_at
from tailrace.client.producer import NotWritten, Producer, ProducerOptions, Written
from tailrace.client.share_consumer import ShareConsumer, ShareOptions
from tailrace.model.ids import PartitionName
from tailrace.testing.simulation import World
from tests.unit.client.misbehaving import Misbehaving
from tests.unit.client.simulated_client import SimulatedClient

LIMITS = Limits(request_s=2.0, retry_s=5.0, unknown_s=1.0)
SLACK_S = 30.0  # a request that was begun in time may try each of the brokers for `request_s`
PARTITION = PartitionName("t", 0)


async def producing(client: SimulatedClient) -> None:
    async with Producer(client.cluster, ProducerOptions(limits=BatchLimits(delivery_s=5.0))) as producer:
        sent = [await producer.send("t", b"x", partition=0) for _ in range(3)]
        for one in await asyncio.gather(*sent, return_exceptions=True):
            assert isinstance(one, Written | NotWritten)


async def consuming(client: SimulatedClient) -> None:
    async with Consumer(client.cluster) as consumer:
        consumer.assign({PARTITION: 0})
        for _ in range(5):
            await consumer.poll(timeout_s=1.0)


async def looking_up(client: SimulatedClient) -> None:
    await offsets_at(client.cluster, {PARTITION: LATEST})


async def committing(client: SimulatedClient) -> None:
    await commit_offsets(client.cluster, "g", {PARTITION: 1})


async def sharing(client: SimulatedClient, protocol: Literal["classic", "consumer"]) -> None:
    options = GroupOptions(
        protocol=protocol, session_timeout_ms=2000, heartbeat_interval_ms=300, rebalance_timeout_ms=2000
    )
    async with GroupConsumer(client.cluster, "g", ["t"], options) as consumer:
        for _ in range(2):
            await consumer.poll(timeout_s=1.0)


async def sharing_classic(client: SimulatedClient) -> None:
    await sharing(client, "classic")


async def sharing_consumer(client: SimulatedClient) -> None:
    await sharing(client, "consumer")


async def taking(client: SimulatedClient) -> None:
    options = ShareOptions(acknowledges="explicit", acquire_mode="record_limit", renews_locks=True)
    async with ShareConsumer(client.cluster, "g", ["t"], options) as consumer:
        for _ in range(5):
            for message in await consumer.poll(3, timeout_s=1.0):
                with suppress(NotAcknowledged):
                    await consumer.settle(message)


@pytest.mark.parametrize(
    "work", [producing, consuming, looking_up, committing, sharing_classic, sharing_consumer, taking]
)
@pytest.mark.parametrize("seed", range(25))
def test_every_call_ends_in_time(work: Any, seed: int) -> None:
    async def play(world: World) -> None:
        brokers = Misbehaving(seed)
        for number in (1, 2, 3):
            await brokers.listen(world.machine(f"h{number}"), number)
        world.machine("h4")
        client = SimulatedClient(world, "h1,h2,h3", LIMITS)

        async def guarded(coroutine: Coroutine[Any, Any, None]) -> None:
            try:
                async with asyncio.timeout(LIMITS.retry_s + SLACK_S):
                    await coroutine
            except ClientError as fault:
                assert str(fault)  # noqa: PT017
            finally:
                client.cluster.close()

        await client.run(guarded(work(client)))
        await world.until(lambda: brokers.open == 0, within_seconds=60)
        assert brokers.requests < 5_000, "the client hammers the brokers"

    with World(seed) as world:
        world.run(play(world))
