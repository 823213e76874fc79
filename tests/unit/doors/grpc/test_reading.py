"""`tailrace.doors.grpc.reading`: clients that send their requests slowly cost little and delay nobody."""

import asyncio
import socket
import struct
import time
from contextlib import ExitStack

import grpc
import pytest

from tailrace.client.faults import Refused
from tailrace.doors.grpc.reading import SLOW_S, Reading
from tailrace.model.limits import GRPC_CALLS_MAX, GRPC_CALLS_PER_CONNECTION_MAX, GRPC_READS_MAX, MiB
from tailrace.testing import Broker
from tests.fuzz.target import failures_in, resident_bytes
from tests.grpc_client import GrpcClient

DEADLINE_S = 15.0  # less than gRPC takes to close a connection that does not answer pings
HEADERS, DATA, SETTINGS, PATH = 1, 0, 4, b"/message_queue.MessageQueue/ProduceMessages"


class Arriving:
    """A call whose request comes when it is told to."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    async def read(self) -> bytes:
        await self.arrived.wait()
        return b"request"


def test_a_slow_request_makes_room_only_when_others_wait() -> None:
    async def run() -> None:
        reading, loop = Reading(), asyncio.get_running_loop()
        slow = [Arriving() for _ in range(GRPC_READS_MAX)]
        tasks = [loop.create_task(reading.read(one)) for one in slow]
        await asyncio.sleep(SLOW_S + 0.1)  # nobody waits: all keep their places
        assert not any(task.done() for task in tasks)
        quick = Arriving()
        quick.arrived.set()
        began = loop.time()
        assert await reading.read(quick) == b"request"
        assert loop.time() - began < SLOW_S
        assert [task.done() for task in tasks] == [True] + [False] * (GRPC_READS_MAX - 1)
        with pytest.raises(Refused, match="did not come completely in time"):
            await tasks[0]
        for one in slow[1:]:
            one.arrived.set()
        assert await asyncio.gather(*tasks[1:]) == [b"request"] * (GRPC_READS_MAX - 1)

    asyncio.run(run())


def test_a_place_that_is_not_taken_goes_to_the_next() -> None:
    async def run() -> None:
        reading, loop = Reading(), asyncio.get_running_loop()
        slow = [Arriving() for _ in range(GRPC_READS_MAX)]
        tasks = [loop.create_task(reading.read(one)) for one in slow]
        await asyncio.sleep(0)
        gone, last = loop.create_task(reading.read(Arriving())), Arriving()
        last.arrived.set()
        await asyncio.sleep(0)
        waiting = loop.create_task(reading.read(last))
        await asyncio.sleep(0)
        slow[0].arrived.set()
        await tasks[0]
        gone.cancel()
        assert await waiting == b"request"
        for one in slow:
            one.arrived.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def beginning_of_calls(count: int) -> bytes:
    """A connection of HTTP/2 with calls whose requests are announced, and never come."""
    head = b"\x83\x86" + literal(b":path", PATH) + literal(b":authority", b"x")
    head += literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0)
    for stream in range(1, 2 * count, 2):
        sent += frame(HEADERS, 4, stream, head) + frame(DATA, 0, stream, b"\0" + struct.pack(">I", 3 * MiB) + b"x")
    return sent


def is_served(client: GrpcClient) -> bool:
    try:
        client.call("grpc.health.v1.Health/Check", client.schema.health.HealthCheckRequest(), timeout_s=10.0)
    except grpc.RpcError:
        return False
    return True


def test_requests_that_never_end_do_not_keep_others_out() -> None:
    with Broker(grpc_port=0, fsync="never") as broker, ExitStack() as open_connections:
        host, port = broker.endpoints["grpc"].split(":")
        before = resident_bytes(broker.pid)
        for _ in range(GRPC_CALLS_MAX // GRPC_CALLS_PER_CONNECTION_MAX + 1):
            slow = open_connections.enter_context(socket.create_connection((host, int(port)), DEADLINE_S))
            slow.sendall(beginning_of_calls(GRPC_CALLS_PER_CONNECTION_MAX))
        deadline = time.monotonic() + DEADLINE_S
        with GrpcClient(broker.endpoints["grpc"]) as client:
            while not is_served(client):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert resident_bytes(broker.pid) - before < 300 * MiB
        assert not failures_in(broker.log)
