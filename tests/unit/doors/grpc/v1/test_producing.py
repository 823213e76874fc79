"""`tailrace.v1.Producer`: records and their outcomes, one request or a stream of them."""

import asyncio
from typing import Any

import pytest

from tailrace.client.admin import delete_topics
from tailrace.client.faults import Refused
from tailrace.client.partition_reading import read_partition
from tailrace.doors.grpc.calls import Failed
from tailrace.doors.grpc.statuses import BadField, Code, status_of
from tailrace.doors.grpc.v1.producing import Producing
from tailrace.model.ids import PartitionName
from tailrace.model.limits import GRPC_STREAM_UNANSWERED_MAX
from tests.unit.doors.grpc.served import LOCAL, Conversation, Served, serving
from tests.unit.doors.kafka.served import given


async def in_log(served: Served, topic: str, partition: int = 0) -> list[Any]:
    cluster = served.upstream.cluster
    return (await read_partition(cluster, PartitionName(topic, partition), 0, max_records=1000)).records


@given(serving)
async def test_records_get_their_places(served: Served) -> None:
    await served.make_topic("orders", 2)
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    records = [
        v1.NewRecord(
            value=b"\xff\x00", key=b"k", partition=1, timestamp_ms=17, headers=[v1.Header(name="n", value=b"v")]
        ),
        v1.NewRecord(partition=1, headers=[v1.Header(name="null")]),
        v1.NewRecord(value=b"", key=b"", partition=0),
    ]
    response = await producing.produce(v1.ProduceRequest(topic="orders", records=records), LOCAL)
    assert [(one.topic, one.partition, one.offset) for one in response.written] == [
        ("orders", 1, 0),
        ("orders", 1, 1),
        ("orders", 0, 0),
    ]
    first, second = await in_log(served, "orders", 1)
    assert (first.key, first.value, first.timestamp_ms, first.headers) == (b"k", b"\xff\x00", 17, (("n", b"v"),))
    assert (second.key, second.value, second.headers) == (None, None, (("null", None),))
    (third,) = await in_log(served, "orders", 0)
    assert (third.key, third.value) == (b"", b"")


@given(serving)
async def test_the_same_key_goes_to_the_same_partition(served: Served) -> None:
    await served.make_topic("orders", 5)
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    records = [v1.NewRecord(value=b"x", key=b"table 4") for _ in range(10)]
    response = await producing.produce(v1.ProduceRequest(topic="orders", records=records), LOCAL)
    assert len({one.partition for one in response.written}) == 1


@given(serving)
async def test_what_cannot_be_a_record_is_named(served: Served) -> None:
    await served.make_topic("orders")
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    for request, field in [
        (v1.ProduceRequest(topic="orders"), "records"),
        (v1.ProduceRequest(records=[v1.NewRecord()]), "topic"),
        (
            v1.ProduceRequest(topic="orders", records=[v1.NewRecord(), v1.NewRecord(partition=-1)]),
            "records[1].partition",
        ),
        (v1.ProduceRequest(topic="orders", records=[v1.NewRecord(timestamp_ms=-1)]), "records[0].timestamp_ms"),
    ]:
        with pytest.raises(BadField) as caught:
            await producing.produce(request, LOCAL)
        assert caught.value.field == field


@given(serving)
async def test_a_topic_that_is_missing_is_not_made(served: Served) -> None:
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    with pytest.raises(Refused) as caught:
        await producing.produce(v1.ProduceRequest(topic="none", records=[v1.NewRecord(value=b"x")]), LOCAL)
    assert status_of(caught.value).code is Code.NOT_FOUND


@given(serving)
async def test_a_topic_that_is_deleted_meanwhile_is_told(served: Served) -> None:
    await served.make_topic("orders")
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    request = v1.ProduceRequest(topic="orders", records=[v1.NewRecord(value=b"x", partition=0)])
    await producing.produce(request, LOCAL)
    assert await delete_topics(served.upstream.cluster, ["orders"]) == {"orders": None}
    for code in (Code.UNAVAILABLE, Code.NOT_FOUND):  # of the first, which was sent, nobody can tell
        with pytest.raises(Failed) as caught:
            await producing.produce(request, LOCAL)
        status = status_of(caught.value.problem)
        assert (status.code, status.reason) == (code, "UNKNOWN_TOPIC_OR_PARTITION")


@given(serving)
async def test_if_only_some_are_written_the_error_tells_which(served: Served) -> None:
    await served.make_topic("orders", 2)
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    records = [v1.NewRecord(value=b"x", partition=0), v1.NewRecord(value=b"x" * 2_000_000, partition=1)]
    with pytest.raises(Failed) as caught:
        await producing.produce(v1.ProduceRequest(topic="orders", records=records), LOCAL)
    assert status_of(caught.value.problem).code is Code.INVALID_ARGUMENT
    (failure,) = caught.value.details
    written, not_written = failure.outcomes
    assert written.written.offset == 0
    assert "orders" in not_written.not_written


@given(serving)
async def test_a_stream_answers_in_order_and_goes_on_after_an_error(served: Served) -> None:
    await served.make_topic("orders")
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    stream = Conversation()
    for number in range(20):
        topic = "orders" if number != 7 else ""
        stream.send(v1.ProduceStreamRequest(id=number, topic=topic, records=[v1.NewRecord(value=b"%d" % number)]))
    stream.end()
    await producing.produce_stream(stream)
    answers = [await stream.received() for _ in range(20)]
    assert [one.id for one in answers] == list(range(20))
    assert [one.id for one in answers if one.HasField("error")] == [7]
    assert answers[7].error.code == Code.INVALID_ARGUMENT
    assert [int(one.value) for one in await in_log(served, "orders")] == [one for one in range(20) if one != 7]


@given(serving)
async def test_a_stream_whose_answers_nobody_reads_is_read_no_further(served: Served) -> None:
    await served.make_topic("orders")
    v1, producing = served.schema.v1, Producing(served.upstream, served.schema)
    stream = Conversation()
    stream.may_read.clear()
    count = 3 * GRPC_STREAM_UNANSWERED_MAX
    for number in range(count):
        stream.send(v1.ProduceStreamRequest(id=number, topic="orders", records=[v1.NewRecord(value=b"x")]))
    stream.end()
    serve = asyncio.ensure_future(producing.produce_stream(stream))
    while stream._requests.qsize() > count - GRPC_STREAM_UNANSWERED_MAX:  # noqa: ASYNC110 a queue rings no bell
        await asyncio.sleep(0)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert stream._requests.qsize() >= count - GRPC_STREAM_UNANSWERED_MAX - 2
    stream.may_read.set()
    await serve
    assert stream.waiting == count
