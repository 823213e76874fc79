"""Time slices: a request that takes long lets other connections be served in between, and keeps its order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from tailrace.broker.services import time_slices
from tailrace.broker.services.time_slices import MANY_AT_ONCE
from tailrace.client.connection import Connection
from tailrace.client.faults import ConnectionLost
from tailrace.doors.kafka.request_limits import each, together
from tailrace.model.limits import NAMES_PER_TURN_MAX
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import ANSWER_MAX_S, Served, serving, with_broker
from tests.unit.doors.kafka.transacting import mark, oracle_for, send

MANY: Final = 100
AT_ONCE: Final = -1.0  # a turn is over as soon as it began
NEVER: Final = 60.0


@contextmanager
def turns_last(seconds: float) -> Iterator[None]:
    with patch.object(time_slices, "SLICE_MAX_S", seconds):
        yield


def with_batches(count: int, acks: int = -1, timeout_ms: int = 5000) -> ProduceRequest:
    batch = bytes(build_batch([NewRecord(value=b"v", key=b"k")], compression="zstd"))
    partitions = (PartitionToProduce(partition=0, records=batch),) * count
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topics=(TopicToProduce(name="c", partitions=partitions),))


async def connected(served: Served) -> Connection:
    return await Connection.connect(served.node.ports.net, "127.0.0.1", served.door.port)


async def who_is_first(served: Served, work: Callable[[], Awaitable[Any]]) -> str:
    """Which is answered first: some work, or a small request that another client sends at the same time."""
    other = await connected(served)
    answered: list[str] = []

    async def note(name: str, answer: Awaitable[Any]) -> None:
        await answer
        answered.append(name)

    try:
        async with asyncio.timeout(ANSWER_MAX_S), asyncio.TaskGroup() as group:
            group.create_task(note("work", work()))
            group.create_task(note("question", other.call(ApiVersionsRequest(), 0)))
    finally:
        other.close()
    return answered[0]


@with_broker()
async def test_others_are_served_between_the_batches_of_one_request(served: Served) -> None:
    await served.make_topic("c", cleanup_policy="compact")
    with turns_last(NEVER):
        assert await who_is_first(served, lambda: served.call(with_batches(MANY), 9)) == "work"
    with turns_last(AT_ONCE):
        assert await who_is_first(served, lambda: served.call(with_batches(MANY), 9)) == "question"
    assert served.node.hosted.find("c", 0).log.end == 2 * MANY


@with_broker()
async def test_others_are_served_between_the_requests_of_one_client(served: Served) -> None:
    await served.make_topic("c", cleanup_policy="compact")

    async def pipelined(*timeouts_ms: int) -> None:
        requests = [with_batches(1, timeout_ms=timeout_ms) for timeout_ms in timeouts_ms] * (MANY // len(timeouts_ms))
        answers = [served.client.send(one, 9) for one in requests]
        offsets = [(await one).topics[0].partitions[0].base_offset for one in answers]
        assert offsets == list(range(offsets[0], offsets[0] + MANY))

    for timeouts_ms in ((5000,), (5000, 5001)):  # like the one before, and not
        with turns_last(NEVER):
            assert await who_is_first(served, partial(pipelined, *timeouts_ms)) == "work"
        with turns_last(AT_ONCE):
            assert await who_is_first(served, partial(pipelined, *timeouts_ms)) == "question"


@with_broker()
async def test_topics_whose_batches_stay_closed_know_no_turns(served: Served) -> None:
    await served.make_topic("c")
    with turns_last(AT_ONCE):
        assert await who_is_first(served, lambda: served.call(with_batches(MANY), 9)) == "work"


@with_broker()
async def test_very_many_partitions_may_take_long_whatever_is_in_them(served: Served) -> None:
    def fetch(count: int) -> FetchRequest:
        start = PartitionToFetch(partition=0, fetch_offset=0, partition_max_bytes=100)
        wanted = tuple(replace(start, partition=number) for number in range(count))
        return FetchRequest(max_wait_ms=0, min_bytes=1, topics=(TopicToFetch(name="c", partitions=wanted),))

    await served.make_topic("c", MANY_AT_ONCE + 1)
    line = served.door.slices
    with turns_last(AT_ONCE), patch.object(line, "wait", wraps=line.wait) as waited:
        await served.call(fetch(MANY_AT_ONCE), 4)
        await served.call(with_batches(MANY_AT_ONCE), 9)
        assert waited.call_count == 0
        await served.call(fetch(MANY_AT_ONCE + 1), 4)
        assert waited.call_count == 1
        await served.call(with_batches(MANY_AT_ONCE + 1), 9)
        assert waited.call_count == MANY_AT_ONCE  # of the Fetch one; and between all batches but the first two


def test_others_have_their_turn_between_the_names_of_one_request() -> None:
    turns_had = 0

    async def others() -> None:
        nonlocal turns_had
        while True:
            turns_had += 1
            await asyncio.sleep(0)

    async def ask(name: int) -> int:
        return name

    async def run() -> None:
        beside = asyncio.create_task(others())
        names = range(4 * NAMES_PER_TURN_MAX)
        assert await each(names, ask) == list(names)
        assert turns_had == 4
        assert await together(names, ask) == list(names)
        assert turns_had >= 8
        beside.cancel()

    asyncio.run(run())


@with_broker()
async def test_what_a_client_sends_after_a_long_request_comes_after_it(served: Served) -> None:
    await served.make_topic("c", cleanup_policy="compact")
    with turns_last(AT_ONCE):
        first = served.client.send(with_batches(MANY), 9)
        await until(lambda: served.node.hosted.find("c", 0).log.end > 0)
        async with asyncio.timeout(ANSWER_MAX_S):
            answer = await served.client.send(with_batches(2), 9)  # comes in where the first one stood
    assert answer.topics[0].partitions[0].base_offset == MANY
    assert [one.error_code for one in (await first).topics[0].partitions] == [0] * MANY


@with_broker()
async def test_a_client_that_wants_no_answers_loses_nothing_when_it_closes(served: Served) -> None:
    await served.make_topic("c", cleanup_policy="compact")
    client = await connected(served)
    log = served.node.hosted.find("c", 0).log
    with turns_last(AT_ONCE):
        unanswered = [client.send(with_batches(count, acks=0), 9) for count in (MANY, 1, 1, 2, 1)]
        client.close()
        await until(lambda: log.end == MANY + 5)
        await until(lambda: len(served.door) == 1)
    for one in unanswered:
        with suppress(ConnectionLost):
            await one


@with_broker()
async def test_a_connection_counts_until_its_request_is_carried_to_its_end(served: Served) -> None:
    await served.make_topic("c", cleanup_policy="compact")
    client = await connected(served)
    log = served.node.hosted.find("c", 0).log
    with turns_last(AT_ONCE):
        unanswered = client.send(with_batches(MANY), 9)
        await until(lambda: log.end > 0)
        assert client.transport is not None
        client.transport.abort()
        with suppress(ConnectionLost):
            await unanswered
        seen = []
        while log.end < MANY:
            seen.append(len(served.door))
            await asyncio.sleep(0)
        await until(lambda: len(served.door) == 1)
    assert set(seen) == {2}


@with_broker()
async def test_a_transaction_in_turns_is_asked_for_once_and_gives_its_guards_back(served: Served) -> None:
    await served.make_topic("t", 3, message_timestamp_before_max_ms="9000000000000")
    oracle = oracle_for(served)
    with turns_last(AT_ONCE):
        await send(served, "a", partitions=(0, 1, 2))
        await send(served, "b", sequence=1, partitions=(0, 1, 2))
    assert len(oracle.asked) == 1
    await mark(served)
    for number in range(3):
        partition = served.node.hosted.find("t", number)
        assert partition.log.end == (3 if number == 0 else 2)
        assert not partition.guards._taken


def test_a_broker_stops_in_the_middle_of_a_long_request(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("c", cleanup_policy="compact")
            log = served.node.hosted.find("c", 0).log
            unanswered = served.client.send(with_batches(10 * MANY), 9)
            await until(lambda: log.end > 0)
        assert log.end < 10 * MANY
        with suppress(ConnectionLost):
            await unanswered
        await until(lambda: len(asyncio.all_tasks()) == 1)  # the rest is refused
        async with serving(tmp_path) as served:
            assert served.node.hosted.find("c", 0).log.end == log.end

    with turns_last(AT_ONCE):
        asyncio.run(run())
