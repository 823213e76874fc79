"""`tailrace.v1.Consumer`: one read, and streams with and without a group."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from tailrace.client.offsets import committed_offsets
from tailrace.client.producer import Producer
from tailrace.doors.grpc.statuses import BadField
from tailrace.doors.grpc.v1.consuming import Consuming
from tailrace.model.ids import PartitionName
from tests.unit.doors.grpc.served import LOCAL, Conversation, Served, serving
from tests.unit.doors.kafka.served import given


class Client:
    """One consuming stream, and its client."""

    def __init__(self, served: Served, **start: Any) -> None:
        self._request = served.schema.v1.ConsumeRequest
        self.stream = Conversation([self._request(start=self._request.Start(**start))])
        self.serving = asyncio.ensure_future(Consuming(served.upstream, served.schema).consume(self.stream))
        self.assigned: list[int] = []

    async def events(self, kind: str) -> Any:
        while True:
            response = await self.stream.received()
            if response.WhichOneof("event") == "assigned":
                self.assigned = [one.partition for one in response.assigned.partitions]
            if response.WhichOneof("event") == kind:
                return getattr(response, kind)

    async def records(self, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            found += (await self.events("records")).records
        return found

    async def values(self, count: int) -> list[int]:
        return [int(one.value) for one in await self.records(count)]

    async def commit(self, number: int, offsets: Sequence[Any] = ()) -> str:
        self.stream.send(self._request(commit=self._request.Commit(id=number, offsets=offsets)))
        committed = await self.events("committed")
        assert committed.id == number
        return str(committed.refused)

    def give(self, credit: int) -> None:
        self.stream.send(self._request(credit=self._request.Credit(records=credit)))

    async def leave(self) -> None:
        self.stream.end()
        await self.serving

    async def die(self) -> None:
        self.serving.cancel()
        with suppress(asyncio.CancelledError):
            await self.serving


async def fill(served: Served, count: int, partitions: int = 1, topic: str = "orders") -> None:
    await served.make_topic(topic, partitions)
    async with Producer(served.upstream.cluster) as producer:
        for number in range(count):
            written = await producer.send(topic, b"%d" % number, partition=number % partitions)
        await written


@given(serving)
async def test_one_read(served: Served) -> None:
    await fill(served, 5)
    v1, consuming = served.schema.v1, Consuming(served.upstream, served.schema)
    found = await consuming.fetch(v1.FetchRequest(topic="orders", offset=1, max_records=2), LOCAL)
    assert ([one.value for one in found.records], found.next_offset) == ([b"1", b"2"], 3)
    found = await consuming.fetch(v1.FetchRequest(topic="orders", offset=5), LOCAL)
    assert (len(found.records), found.next_offset) == (0, 5)


@given(serving)
async def test_a_read_waits_for_a_record(served: Served) -> None:
    await fill(served, 1)
    v1, consuming = served.schema.v1, Consuming(served.upstream, served.schema)
    request = v1.FetchRequest(topic="orders", offset=1, max_wait_ms=15_000)
    reading = asyncio.ensure_future(consuming.fetch(request, LOCAL))
    async with Producer(served.upstream.cluster) as producer:
        await (await producer.send("orders", b"late"))
    assert [one.value for one in (await reading).records] == [b"late"]


@given(serving)
async def test_a_group_goes_on_where_it_has_committed(served: Served) -> None:
    await fill(served, 6)
    first = Client(served, group="g", topics=["orders"], max_records=2)
    assert await first.values(2) == [0, 1]
    position = served.schema.v1.Position(topic="orders", partition=0, offset=2)
    assert not await first.commit(1, [position])
    await first.leave()
    second = Client(served, group="g", topics=["orders"])
    assert await second.values(4) == [2, 3, 4, 5]
    assert not await second.commit(2)  # all that was sent
    where = PartitionName("orders", 0)
    assert await committed_offsets(served.upstream.cluster, "g", [where]) == {where: 6}
    await second.leave()


@given(serving)
async def test_a_member_that_dies_leaves_its_records_to_others(served: Served) -> None:
    await fill(served, 4)
    first = Client(served, group="g", topics=["orders"])
    assert await first.values(4) == [0, 1, 2, 3]
    await first.die()
    second = Client(served, group="g", topics=["orders"])
    assert await second.values(4) == [0, 1, 2, 3]
    await second.leave()


@given(serving)
async def test_no_record_comes_without_credit(served: Served) -> None:
    await fill(served, 10)
    client = Client(served, group="g", topics=["orders"], credit=3)
    assert await client.values(3) == [0, 1, 2]
    assert not await client.commit(1)  # requests are served all the while
    assert not client.stream.waiting
    client.give(4)
    assert await client.values(4) == [3, 4, 5, 6]
    await client.leave()


@pytest.mark.parametrize("members", [1, 4, 16])
def test_members_share_partitions_evenly(members: int, tmp_path: Any) -> None:
    async def run() -> None:
        async with serving(tmp_path) as served:
            await fill(served, 32, partitions=16)
            clients = [Client(served, group="g", topics=["orders"]) for _ in range(members)]
            listening = [asyncio.ensure_future(one.events("never")) for one in clients]
            while sorted(len(one.assigned) for one in clients) != [16 // members] * members:  # noqa: ASYNC110 their clients listen
                await asyncio.sleep(0.01)
            assert sorted(number for one in clients for number in one.assigned) == list(range(16))
            for one in listening:
                one.cancel()
            await asyncio.gather(*(one.leave() for one in clients))

    asyncio.run(run())


@given(serving)
async def test_a_stream_without_a_group_reads_from_positions(served: Served) -> None:
    await fill(served, 10, partitions=2)
    position = served.schema.v1.Position(topic="orders", partition=1, offset=3)
    client = Client(served, positions=[position])
    assert await client.values(2) == [7, 9]
    assert "without a group" in await client.commit(1)
    await client.leave()


@given(serving)
async def test_what_a_member_does_not_own_it_cannot_commit(served: Served) -> None:
    await fill(served, 1)
    await served.make_topic("other")
    client = Client(served, group="g", topics=["orders"])
    await client.values(1)
    assert "other-0" in await client.commit(1, [served.schema.v1.Position(topic="other", partition=0, offset=1)])
    await client.leave()


@given(serving)
async def test_a_stream_that_begins_wrong_is_told_why(served: Served) -> None:
    v1, consuming = served.schema.v1, Consuming(served.upstream, served.schema)
    start = v1.ConsumeRequest.Start
    for request in [
        v1.ConsumeRequest(),
        v1.ConsumeRequest(credit=v1.ConsumeRequest.Credit(records=1)),
        v1.ConsumeRequest(start=start()),
        v1.ConsumeRequest(start=start(group="g")),
        v1.ConsumeRequest(start=start(group="g", topics=["orders", ""])),
        v1.ConsumeRequest(start=start(group="g", topics=["orders"], credit=-1)),
        v1.ConsumeRequest(start=start(positions=[v1.Position(topic="orders", offset=-1)])),
        v1.ConsumeRequest(start=start(positions=[v1.Position(topic="orders")] * 2)),
    ]:
        with pytest.raises(BadField):
            await consuming.consume(Conversation([request]))
