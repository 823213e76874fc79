"""`tailrace.v1.Queue`: messages are locked for a stream, and settled one by one."""

import asyncio
from typing import Any

import pytest

from tailrace.client.admin import change_group_settings
from tailrace.client.producer import Producer
from tailrace.doors.grpc.statuses import BadField
from tailrace.doors.grpc.v1.working import Working
from tests.unit.doors.grpc.served import Conversation, Served, serving
from tests.unit.doors.kafka.served import given


class Worker:
    def __init__(self, served: Served, **start: Any) -> None:
        self._request = served.schema.v1.WorkRequest
        self._outcomes = served.schema.v1.Outcome
        self.stream = Conversation([self._request(start=self._request.Start(group="w", topics=["jobs"], **start))])
        self.serving = asyncio.ensure_future(Working(served.upstream, served.schema).work(self.stream))
        self._deliveries: list[Any] = []
        self._settled: list[Any] = []

    async def _receive(self) -> None:
        response = await self.stream.received()
        self._deliveries += response.deliveries.deliveries
        if response.WhichOneof("event") == "settled":
            self._settled.append(response.settled)

    async def deliveries(self, count: int) -> list[Any]:
        while len(self._deliveries) < count:
            await self._receive()
        found, self._deliveries = self._deliveries[:count], self._deliveries[count:]
        return found

    async def settle(self, outcome: str, *ids: int) -> list[str]:
        number = getattr(self._outcomes, outcome)
        self.stream.send(self._request(settle=self._request.Settle(ids=ids, outcome=number)))
        return await self._refusals(len(ids))

    async def renew(self, *ids: int) -> list[str]:
        self.stream.send(self._request(renew=self._request.Renew(ids=ids)))
        return await self._refusals(len(ids))

    async def _refusals(self, count: int) -> list[str]:
        while len(self._settled) < count:
            await self._receive()
        found, self._settled = self._settled, []
        return [one.refused for one in found]

    async def leave(self) -> None:
        self.stream.end()
        await self.serving


async def fill(served: Served, count: int) -> None:
    await served.make_topic("jobs")
    await change_group_settings(served.upstream.cluster, "w", {"share.auto.offset.reset": "earliest"})
    async with Producer(served.upstream.cluster) as producer:
        for number in range(count):
            written = await producer.send("jobs", b"%d" % number)
        await written


def values(deliveries: list[Any]) -> list[int]:
    return [int(one.record.value) for one in deliveries]


@given(serving)
async def test_no_more_messages_come_than_may_be_unsettled(served: Served) -> None:
    await fill(served, 5)
    worker = Worker(served, max_unsettled=2)
    first, second = await worker.deliveries(2)
    assert values([first, second]) == [0, 1]
    assert await worker.renew(first.id) == [""]
    assert not worker.stream.waiting
    assert await worker.settle("ACCEPT", first.id) == [""]
    (third,) = await worker.deliveries(1)
    assert values([third]) == [2]
    await worker.leave()


@given(serving)
async def test_what_is_released_comes_again_and_what_is_rejected_does_not(served: Served) -> None:
    await fill(served, 3)
    worker = Worker(served, max_unsettled=3)
    zero, one, two = await worker.deliveries(3)
    assert await worker.settle("REJECT", zero.id) == [""]
    assert await worker.settle("ACCEPT", two.id) == [""]
    assert await worker.settle("RELEASE", one.id) == [""]
    (again,) = await worker.deliveries(1)
    assert (values([again]), again.delivery_count) == ([1], 2)
    await worker.leave()


@given(serving)
async def test_what_a_stream_leaves_unsettled_goes_to_another(served: Served) -> None:
    await fill(served, 2)
    first = Worker(served)
    (held,) = await first.deliveries(1)
    second = Worker(served)
    (other,) = await second.deliveries(1)
    assert values([held, other]) == [0, 1]
    assert await second.settle("ACCEPT", other.id) == [""]
    await first.leave()
    (again,) = await second.deliveries(1)
    assert values([again]) == [0]
    await second.leave()


@given(serving)
async def test_a_delivery_that_is_not_there_cannot_be_settled(served: Served) -> None:
    await fill(served, 1)
    worker = Worker(served)
    (one,) = await worker.deliveries(1)
    assert await worker.settle("ACCEPT", one.id) == [""]
    for number in (one.id, 17):
        (refused,) = await worker.settle("ACCEPT", number)
        assert "no such delivery" in refused
    await worker.leave()


@given(serving)
async def test_an_outcome_must_be_one(served: Served) -> None:
    await fill(served, 1)
    v1 = served.schema.v1
    start = v1.WorkRequest(start=v1.WorkRequest.Start(group="w", topics=["jobs"]))
    for wrong in (v1.WorkRequest.Settle(ids=[1]), v1.WorkRequest.Settle(ids=[1], outcome=4)):
        stream = Conversation([start, v1.WorkRequest(settle=wrong)])
        with pytest.raises(BadField, match="outcome"):
            await Working(served.upstream, served.schema).work(stream)
