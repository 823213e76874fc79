"""PUSH is durable before its answer; what cannot be stored gets an error, and the connection goes on."""

import asyncio
import time

from tailrace.client.admin import topic_settings
from tailrace.client.offsets import LATEST, offsets_at
from tailrace.doors.dmqp.codec import Method, Status
from tailrace.model.ids import PartitionName
from tailrace.model.limits import DMQP_PAYLOAD_MAX_BYTES
from tests.unit.doors.dmqp.served import Served, with_door


async def stored(served: Served, topic: str) -> list[int]:
    """How many messages each shard has."""
    await served.cluster.refresh([topic])
    ends = await offsets_at(served.cluster, dict.fromkeys(served.cluster.map.partitions(topic), LATEST))
    return [ends[PartitionName(topic, number)] for number in range(len(ends))]


@with_door()
async def test_a_pushed_message_is_in_the_log_with_the_time_of_the_server(served: Served) -> None:
    client = await served.client()
    before = int(time.time())
    answer = await client.call(Method.PUSH, 3, b"hello")
    assert (answer.status, answer.payload, answer.topic_id) == (Status.OK, b"", 3)
    assert before <= answer.timestamp <= time.time()
    assert sum(await stored(served, "dmqp-3")) == 1


@with_door()
async def test_a_topic_has_three_shards_and_keeps_messages_until_they_are_popped(served: Served) -> None:
    client = await served.client()
    await client.push(b"x", 9)
    settings = {one.name: one.value for one in await topic_settings(served.cluster, "dmqp-9")}
    assert settings["retention.ms"] == settings["retention.bytes"] == "-1"
    assert int(settings["max.message.bytes"] or 0) > DMQP_PAYLOAD_MAX_BYTES
    assert len(await stored(served, "dmqp-9")) == 3


@with_door()
async def test_pushes_one_by_one_go_to_the_shards_in_turn(served: Served) -> None:
    client = await served.client()
    for _ in range(6):
        await client.push(b"x")
    assert await stored(served, "dmqp-0") == [2, 2, 2]


@with_door()
async def test_pipelined_pushes_are_answered_in_order_and_all_are_stored(served: Served) -> None:
    client = await served.client()
    for number in range(5000):
        client.send(Method.PUSH, number % 2, b"%d" % number)
    answers = [await client.answer() for _ in range(5000)]
    assert [one.topic_id for one in answers] == [number % 2 for number in range(5000)]
    assert {one.status for one in answers} == {Status.OK}
    assert sum(await stored(served, "dmqp-0")) == sum(await stored(served, "dmqp-1")) == 2500


@with_door()
async def test_exactly_one_mebibyte_passes_and_one_byte_more_does_not(served: Served) -> None:
    client = await served.client()
    whole = bytes(range(256)) * (DMQP_PAYLOAD_MAX_BYTES // 256)
    assert (await client.call(Method.PUSH, 0, whole)).status is Status.OK
    assert (await client.call(Method.PUSH, 0, whole + b"!")).status is Status.EMSGSIZE
    assert (await client.call(Method.PUSH, 0, b"still here")).status is Status.OK
    assert sum(await stored(served, "dmqp-0")) == 2


@with_door()
async def test_an_empty_payload_is_a_message(served: Served) -> None:
    client = await served.client()
    await client.push(b"")
    assert sum(await stored(served, "dmqp-0")) == 1


@with_door()
async def test_errors_leave_the_connection_usable(served: Served) -> None:
    client = await served.client()
    assert (await client.call(Method.RESPONSE, 1, b"what?")).status is Status.EPROTO
    assert (await client.call(5, 2, b"ignored")).status is Status.ENOSYS
    assert (await client.call(255, 3)).status is Status.ENOSYS
    assert (await client.call(Method.PUSH, 4, b"x")).status is Status.OK


@with_door(dmqp_header_order="program")
async def test_the_header_of_the_c_program(served: Served) -> None:
    client = await served.client()
    client.writer.write(b"\0" * 8 + (5).to_bytes(4, "big") + bytes([0, Method.PUSH, 7, 0]) + b"hello")
    header = await client.reader.readexactly(16)
    assert header[8:] == bytes([0, 0, 0, 0, 0, Method.RESPONSE, 7, 0])
    assert sum(await stored(served, "dmqp-7")) == 1


@with_door(dmqp_topics="1=orders", dmqp_shards=2)
async def test_topic_ids_may_stand_for_other_topics(served: Served) -> None:
    client = await served.client()
    await client.push(b"x", 1)
    await client.push(b"x", 2)
    assert len(await stored(served, "orders")) == len(await stored(served, "dmqp-2")) == 2


@with_door()
async def test_many_connections_share_batches(served: Served) -> None:
    clients = [await served.client() for _ in range(50)]
    await asyncio.gather(*(client.push(b"%d" % number) for number, client in enumerate(clients)))
    assert sum(await stored(served, "dmqp-0")) == 50
