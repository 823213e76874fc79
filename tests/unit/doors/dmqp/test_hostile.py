"""What bad clients get: their own error or the end of their connection, while nobody else notices."""

import asyncio
import os
import socket
import struct
from typing import cast

import pytest

from tailrace.doors.dmqp.codec import Codec, Header, Method, Status
from tailrace.model.limits import (
    DMQP_IN_FLIGHT_MAX_BYTES,
    DMQP_PAYLOAD_MAX_BYTES,
    DMQP_READ_BYTES,
    DMQP_REQUESTS_IN_FLIGHT_MAX,
    DMQP_UNSENT_MAX_BYTES,
)
from tests.unit.doors.dmqp.served import Served, with_door
from tests.unit.doors.kafka.hostile import until

MANY = 1_500


async def goes_on(served: Served) -> None:
    """Another client is served."""
    client = await served.client()
    await client.push(b"fine", 250)
    assert await client.pop(250) == b"fine"
    client.close()


@with_door()
async def test_a_length_that_lies_gets_its_error_before_the_payload(served: Served) -> None:
    client = await served.client()
    client.send(Method.PUSH, 1, length=2**32 - 1)
    assert (await client.answer()).status is Status.EMSGSIZE
    for _ in range(64):
        client.writer.write(bytes(DMQP_READ_BYTES))
        await client.writer.drain()
    assert served.door.held_bytes == 0
    await goes_on(served)


@with_door()
async def test_a_request_that_is_cut_off_ends_with_its_connection(served: Served) -> None:
    whole = Codec().encoded(Header(0, 100, Method.PUSH, 1, 0)) + bytes(100)
    for size in (1, 15, 16, 17, 115):
        client = await served.client()
        client.writer.write(whole[:size])
        client.writer.write_eof()
        assert await client.is_closed()
    await until(lambda: len(served.door) == 0)
    assert served.door.held_bytes == 0
    await goes_on(served)


@with_door()
async def test_requests_before_the_end_of_the_stream_are_answered(served: Served) -> None:
    client = await served.client()
    for number in range(MANY):
        client.send(Method.PUSH, 1, b"%d" % number)
    client.writer.write_eof()
    for _ in range(MANY):
        assert (await client.answer()).status is Status.OK
    assert await client.is_closed()


@with_door()
async def test_another_protocol_gets_an_error_or_nothing(served: Served) -> None:
    for data in (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", bytes.fromhex("16030100c8010000c40303") + bytes(200)):
        client = await served.client()
        client.writer.write(data)
        assert (await client.answer()).status in (Status.ENOSYS, Status.EMSGSIZE, Status.EPROTO)
        client.close()
    await goes_on(served)


@with_door()
async def test_random_bytes(served: Served) -> None:
    for _ in range(50):
        client = await served.client()
        client.writer.write(os.urandom(5000))
        client.close()
    await goes_on(served)


@with_door()
async def test_a_client_that_dies_before_it_reads_leaves_nothing_behind(served: Served) -> None:
    first = await served.client()
    for number in range(50):
        await first.push(b"%d" % number)
    for _ in range(10):
        client = await served.client()
        for _ in range(3):
            client.send(Method.POP)
        found = client.writer.get_extra_info("socket")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
        client.writer.transport.abort()
    await until(lambda: len(served.door) == 1)
    left = set()
    while True:
        answer = await first.call(Method.POP)
        if answer.status is Status.OK:
            assert answer.payload not in left
            left.add(answer.payload)
        elif answer.status is Status.ENODATA:
            break
    assert len(left) >= 20, "each dead client took at most the messages it asked for"
    await goes_on(served)


@with_door()
async def test_a_client_that_does_not_read_is_not_read_and_takes_no_more_messages(served: Served) -> None:
    pusher = await served.client()
    for _ in range(12):
        await pusher.push(bytes(DMQP_PAYLOAD_MAX_BYTES))
    client = await served.client(limit=1)
    for _ in range(12):
        client.send(Method.POP)
    transport = cast(asyncio.Transport, client.writer.transport)
    transport.pause_reading()
    (slow,) = [
        one for one in served.door._connections if one.peer.endswith(f":{client.writer.get_extra_info('sockname')[1]}")
    ]
    await until(lambda: not slow._writable.is_set())
    left = 0
    while await pusher.pop() is not None:
        left += 1
    assert left > 0, "messages stay in the queue while the client does not read"
    transport.resume_reading()
    statuses = []
    for _ in range(12):
        answer = await client.answer()
        statuses.append(answer.status)
    assert statuses.count(Status.OK) == 12 - left


@with_door()
async def test_responses_that_are_not_read_are_bounded_together(served: Served) -> None:
    size, count = 256 * 1024, 60
    pusher = await served.client()
    await pusher.push(bytes(size))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tailrace.doors.dmqp.door.DMQP_UNREAD_MAX_BYTES", 10 * DMQP_UNSENT_MAX_BYTES)
        clients = []
        for _ in range(12):  # each leaves at least DMQP_UNSENT_MAX_BYTES unread, and at most a payload more
            client = await served.client(limit=1)
            clients.append(client)
            cast(asyncio.Transport, client.writer.transport).pause_reading()
            for _ in range(count):
                client.send(Method.PEEK)
            port = client.writer.get_extra_info("sockname")[1]
            (slow,) = [one for one in served.door._connections if one.peer.endswith(f":{port}")]
            await until(lambda slow=slow: not slow._writable.is_set())  # type: ignore[misc]
        await until(lambda: len(served.door) < 13)
        for client in (clients[0], clients[-1]):
            cast(asyncio.Transport, client.writer.transport).resume_reading()
        for _ in range(count):
            assert (await clients[-1].answer()).status is Status.OK
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await clients[0].reader.readexactly(count * size)


@with_door()
async def test_requests_in_flight_are_bounded(served: Served) -> None:
    client = await served.client()
    for _ in range(MANY):
        client.send(Method.PEEK_TIMESTAMP, 3)
    for _ in range(MANY):
        assert (await client.answer()).status is Status.ENODATA
        (connection,) = served.door.connections
        assert connection.requests_in_flight <= DMQP_REQUESTS_IN_FLIGHT_MAX


@with_door()
async def test_payloads_in_flight_are_bounded(served: Served) -> None:
    client = await served.client()
    count = 24
    most = 0
    for _ in range(count):
        client.send(Method.PUSH, 3, bytes(DMQP_PAYLOAD_MAX_BYTES))
    for _ in range(count):
        assert (await client.answer()).status is Status.OK
        most = max(most, served.door.held_bytes)
    assert most <= DMQP_IN_FLIGHT_MAX_BYTES + DMQP_PAYLOAD_MAX_BYTES + DMQP_READ_BYTES
    assert served.door.held_bytes == 0


@with_door()
async def test_when_all_payloads_take_too_much_memory_more_are_refused(served: Served) -> None:
    others_bytes = 2**40
    served.door.held_bytes += others_bytes
    client = await served.client()
    client.send(Method.PUSH, 1, bytes(DMQP_PAYLOAD_MAX_BYTES))  # arrives in pieces
    client.send(Method.PUSH, 1, b"small")
    client.send(Method.POP, 1)
    assert (await client.answer()).status is Status.EAGAIN
    assert (await client.answer()).status is Status.EAGAIN
    assert (await client.answer()).status is Status.ENODATA
    served.door.held_bytes -= others_bytes
    assert served.door.held_bytes == 0
    await client.push(b"again")


@with_door(dmqp_socket_timeout_ms=1000)
async def test_timeouts(served: Served) -> None:
    silent = await served.client()
    half = await served.client()
    half.writer.write(b"\0" * 9)
    lying = await served.client()
    lying.send(Method.PUSH, 1, b"x", length=1000)
    slow = await served.client()
    good = await served.client()
    await good.push(b"x")
    ended = [asyncio.ensure_future(one.is_closed()) for one in (silent, half, lying)]

    async def drip() -> bool:
        """One byte at a time, so that the connection is never silent for long."""
        try:
            while True:
                slow.writer.write(b"\0")
                await slow.writer.drain()
                if slow.reader.at_eof():
                    return True
                await asyncio.sleep(0.1)
        except ConnectionError:
            return True

    assert await asyncio.gather(*ended, asyncio.wait_for(drip(), 15)) == [True] * 4
    assert await good.pop() == b"x", "a connection that is idle between requests stays open"


@with_door(max_connections=14)
async def test_too_many_connections(served: Served) -> None:
    clients = [await served.client() for _ in range(14)]
    for client in clients:
        await client.push(b"x")
    assert await (await served.client()).is_closed()
    assert await clients[0].pop() == b"x"
    clients[1].close()
    await until(lambda: len(served.door) == 13)
    await (await served.client()).push(b"x")


@with_door()
async def test_a_door_that_stops_answers_what_is_under_way(served: Served) -> None:
    client = await served.client()
    await client.push(b"x")
    for _ in range(100):
        client.send(Method.PUSH, 0, b"more")
    statuses: list[Status] = []

    async def read_all() -> None:
        try:
            while True:
                statuses.append((await client.answer()).status)
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    reading = asyncio.ensure_future(read_all())
    await until(lambda: bool(statuses))
    await served.door.stop(5.0)
    await reading
    assert set(statuses) <= {Status.OK, Status.EAGAIN}
