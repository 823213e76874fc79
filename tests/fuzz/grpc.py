"""`python -m tests.fuzz.grpc --requests 200000`: hostile requests against a live gRPC door. Exits 1 with a finding.

Most are calls of every method, by gRPC's own client: messages with senseless fields, messages with bytes changed, and
no messages at all; streams get several of them and are cancelled early. Each must get a status that fits it. The others
are connections that break HTTP/2 itself: frames with lengths that lie, cut off, repeated, in the wrong order; other
protocols; ends and resets in the middle. Beside all of them one good client writes and reads, and must be served.
Afterwards no connection is left over, memory is within its bounds, the log shows no failure, every log on disk is
whole, and what the good client wrote is there after a restart.
"""

import argparse
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from rich.console import Console

from tailrace.doors.grpc.schema import HEALTH, MESSAGE_QUEUE, V1, Schema
from tailrace.testing import Broker
from tests.fuzz import target
from tests.grpc_client import GrpcClient

MiB: Final = 1024 * 1024
VOLLEY: Final = 50  # calls under way at a time
STREAM_SHARE: Final = 0.02  # of calls
BROKEN_SHARE: Final = 0.15  # of requests: connections that break HTTP/2
ANSWER_MAX_S: Final = 60.0
STREAM_S: Final = 0.3
GROWTH_MAX_BYTES: Final = 96 * MiB
PEAK_MAX_BYTES: Final = 512 * MiB
PAUSE_S: Final = 0.02  # of the good client, between two rounds
NOT_ALLOWED: Final = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED)
NUMBERS: Final = (-1, 0, 0, 0, 1, 1, 2**31 - 1, -(2**31))
TEXTS: Final = ("", "fuzz", "fuzz", "fuzz", "g", "a/b", "x" * 300, "é\0", "2")
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INT_TYPES, MESSAGE_TYPE, STRING_TYPE, BYTES_TYPE, BOOL_TYPE, ENUM_TYPE = (3, 4, 5, 13), 11, 9, 12, 8, 14


@dataclass(slots=True)
class Outcome:
    requests: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    streams: int = 0
    rounds: int = 0  # of the good client
    warm_bytes: int = 0
    end_bytes: int = 0
    peak_bytes: int = 0
    findings: list[str] = field(default_factory=list)


class Plan:
    """What is sent, from one seed."""

    def __init__(self, schema: Schema, seed: int) -> None:
        self.chance = random.Random(seed)
        self._schema = schema
        self._unary: list[Any] = []
        self._streams: list[Any] = []
        for service in (MESSAGE_QUEUE, HEALTH, *(f"tailrace.v1.{one}" for one in V1)):
            for method in schema.service(service).methods:
                if not method.client_streaming and not method.server_streaming:
                    self._unary.append(method)
                elif method.client_streaming:
                    self._streams.append(method)

    def call(self) -> tuple[str, bytes]:
        while True:
            method = self.chance.choice(self._unary)
            data = self._request(method)
            if not self._stops_the_broker(method, data):
                return f"{method.containing_service.full_name}/{method.name}", data

    def stream(self) -> tuple[str, list[bytes]]:
        method = self.chance.choice(self._streams)
        requests = [self._request(method) for _ in range(self.chance.randint(1, 5))]
        return f"{method.containing_service.full_name}/{method.name}", requests

    def _request(self, method: Any) -> bytes:
        dice = self.chance.random()
        if dice < 0.1:
            return self.chance.randbytes(self.chance.randrange(200))
        message = self._schema.message_class(method.input_type)()
        self._fill(message, depth=3)
        data = bytearray(message.SerializeToString())
        for _ in range(self.chance.randint(1, 4) if dice < 0.4 and data else 0):
            at = self.chance.randrange(len(data))
            data[at : at + self.chance.randrange(3)] = self.chance.randbytes(self.chance.randrange(3)) or b"\0"
        return bytes(data)

    def _stops_the_broker(self, method: Any, data: bytes) -> bool:
        if method.name != "Shutdown":
            return False
        with suppress(Exception):
            return bool(self._schema.queue.ShutdownRequest.FromString(data).broker_id == "1")
        return False

    def _fill(self, message: Any, depth: int) -> None:
        for one in message.DESCRIPTOR.fields:
            if self.chance.random() < 0.2 or (one.message_type is not None and one.message_type.GetOptions().map_entry):
                continue
            if one.type == MESSAGE_TYPE:
                for _ in range(self.chance.randint(1, 3) if depth else 0):
                    inner = getattr(message, one.name)
                    self._fill(inner.add() if hasattr(inner, "add") else inner, depth - 1)
                continue
            values = [self._value(one.type) for _ in range(self.chance.randrange(4))]
            if hasattr(getattr(message, one.name), "extend"):
                getattr(message, one.name).extend(values)
            elif values:
                setattr(message, one.name, values[0])

    def _value(self, kind: int) -> Any:
        if kind == STRING_TYPE:
            return self.chance.choice(TEXTS)
        if kind == BYTES_TYPE:
            return self.chance.randbytes(self.chance.choice((0, 3, 100)))
        if kind == BOOL_TYPE:
            return self.chance.random() < 0.5
        number = self.chance.choice(NUMBERS)
        return number if kind not in (4, 13) else abs(number)  # unsigned

    def broken_bytes(self) -> bytes:
        """Bytes that are no HTTP/2, or stop being it."""
        chance = self.chance
        frames = b"".join(self._frame() for _ in range(chance.randint(1, 30)))
        match chance.randrange(6):
            case 0:
                return chance.randbytes(chance.randrange(1, 3000))
            case 1:
                return PREFACE[: chance.randrange(len(PREFACE))]
            case 2:
                return b"POST /tailrace.v1.Producer/Produce HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n" + bytes(9)
            case 3:
                return PREFACE + frames
            case 4:
                return PREFACE + self._frame(kind=4, stream=0, payload=b"") + frames
            case _:
                return PREFACE + struct.pack(">I", 2**24 - 1)[1:] + b"\0\0\0\0\0\1" + chance.randbytes(5000)

    def _frame(self, kind: int | None = None, stream: int | None = None, payload: bytes | None = None) -> bytes:
        chance = self.chance
        kind = chance.randrange(12) if kind is None else kind
        stream = chance.choice((0, 1, 1, 3, 2, 2**31 - 1)) if stream is None else stream
        payload = chance.randbytes(chance.choice((0, 4, 8, 50, 5000))) if payload is None else payload
        length = len(payload) if chance.random() < 0.8 else chance.randrange(2**16)
        return (
            struct.pack(">I", length)[1:] + bytes((kind, chance.getrandbits(8))) + struct.pack(">I", stream) + payload
        )


def shoot(broker: Broker, client: GrpcClient, plan: Plan, count: int, outcome: Outcome) -> None:
    until = outcome.requests + count
    while outcome.requests < until:
        if plan.chance.random() < BROKEN_SHARE:
            for _ in range(VOLLEY):
                _break(broker.port_of("grpc"), plan, outcome)
        else:
            _volley(client, plan, outcome)


def _volley(client: GrpcClient, plan: Plan, outcome: Outcome) -> None:
    calls = []
    for _ in range(VOLLEY):
        if plan.chance.random() < STREAM_SHARE:
            _stream(client, plan, outcome)
        else:
            path, data = plan.call()
            calls.append((path, data, client.method(path, raw=True).future(data, timeout=ANSWER_MAX_S)))  # type: ignore[attr-defined]
    for path, data, call in calls:
        outcome.requests += 1
        code = call.code()
        outcome.statuses[code.name] += 1
        if code in NOT_ALLOWED:
            outcome.findings.append(f"{path} got {code.name}, {call.details()!r}, for {data[:200]!r}")


def _stream(client: GrpcClient, plan: Plan, outcome: Outcome) -> None:
    path, requests = plan.stream()
    outcome.streams += 1
    outcome.requests += len(requests)
    call = client.method(path, raw=True)(iter(requests), timeout=STREAM_S)
    try:
        for _ in range(plan.chance.randrange(4)):
            next(call)
        call.cancel()
    except StopIteration:
        pass
    except grpc.RpcError:
        outcome.statuses[call.code().name] += 1
        if call.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL):
            outcome.findings.append(f"{path} got {call.code().name}, {call.details()!r}, for {requests!r}"[:500])


def _break(port: int, plan: Plan, outcome: Outcome) -> None:
    outcome.requests += 1
    outcome.broken += 1
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=ANSWER_MAX_S) as connection:
        connection.sendall(plan.broken_bytes())
        if plan.chance.random() < 0.5:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset


class Good(threading.Thread):
    """A client that does everything right: writes a record, and reads it."""

    def __init__(self, broker: Broker, outcome: Outcome) -> None:
        super().__init__()
        self._address = broker.endpoints["grpc"]
        self._outcome = outcome
        self.stopping = threading.Event()

    def run(self) -> None:
        with GrpcClient(self._address) as client:
            while not self.stopping.is_set():
                try:
                    self._round(client)
                except Exception as error:
                    self._outcome.findings.append(f"the good client failed: {error!r}")
                    return
                time.sleep(PAUSE_S)

    def _round(self, client: GrpcClient) -> None:
        v1, number = client.schema.v1, self._outcome.rounds
        record = v1.NewRecord(value=b"%d" % number)
        client.call("tailrace.v1.Producer/Produce", v1.ProduceRequest(topic="good", records=[record]))
        (found,) = client.call("tailrace.v1.Consumer/Fetch", v1.FetchRequest(topic="good", offset=number)).records
        if found.value != record.value:
            self._outcome.findings.append(f"the good client read {found.value!r} in round {number}")
        self._outcome.rounds += 1


def fuzz(broker: Broker, seed: int, requests: int) -> Outcome:
    outcome = Outcome()
    sockets_before = target.sockets(broker.pid)
    with GrpcClient(broker.endpoints["grpc"]) as client:
        for name in ("good", "fuzz"):
            request = client.schema.v1.CreateTopicRequest(name=name, partitions=1 if name == "good" else 2)
            client.call("tailrace.v1.Topics/CreateTopic", request)
        good = Good(broker, outcome)
        good.start()
        try:
            plan = Plan(client.schema, seed)
            shoot(broker, client, plan, requests // 5, outcome)
            outcome.warm_bytes = target.resident_bytes(broker.pid)
            shoot(broker, client, plan, requests - outcome.requests, outcome)
        finally:
            good.stopping.set()
            good.join()
    deadline = time.monotonic() + target.SETTLE_MAX_S
    while target.sockets(broker.pid) > sockets_before + 8 and time.monotonic() < deadline:  # those of the door's client
        time.sleep(0.02)
    if target.sockets(broker.pid) > sockets_before + 8:
        outcome.findings.append(f"{target.sockets(broker.pid) - sockets_before} connections are left over")
    outcome.end_bytes, outcome.peak_bytes = target.resident_bytes(broker.pid), target.peak_bytes(broker.pid)
    if outcome.end_bytes - outcome.warm_bytes > GROWTH_MAX_BYTES:
        outcome.findings.append(f"memory grew by {(outcome.end_bytes - outcome.warm_bytes) / MiB:.0f} MiB")
    if outcome.peak_bytes > PEAK_MAX_BYTES:
        outcome.findings.append(f"memory reached {outcome.peak_bytes / MiB:.0f} MiB")
    broker.stop()
    outcome.findings += [f"on disk: {problem}" for problem in target.damage_in(broker.data_dir)]
    broker.start()
    _look_for_what_was_written(broker, outcome)
    outcome.findings += [f"in the broker's log:\n{text}" for text in target.failures_in(broker.log)]
    return outcome


def _look_for_what_was_written(broker: Broker, outcome: Outcome) -> None:
    with GrpcClient(broker.endpoints["grpc"]) as client:
        found: list[int] = []
        while True:
            request = client.schema.v1.FetchRequest(topic="good", offset=len(found))
            records = client.call("tailrace.v1.Consumer/Fetch", request).records
            if not records:
                break
            found += [int(one.value) for one in records]
    if found != list(range(outcome.rounds)):
        outcome.findings.append(f"after the restart {len(found)} of {outcome.rounds} records are there")


@contextmanager
def serving() -> Iterator[Broker]:
    with Broker(grpc_port=0, fsync="never") as broker:
        yield broker


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.grpc", description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with serving() as broker:
        outcome = fuzz(broker, given.seed, given.requests)
    console = Console(stderr=not sys.stdout.isatty())
    console.print(f"{outcome.requests} requests, {outcome.broken} broken connections, {outcome.streams} streams")
    console.print(f"statuses: {dict(outcome.statuses)}")
    memory = [one // MiB for one in (outcome.warm_bytes, outcome.end_bytes, outcome.peak_bytes)]
    console.print(f"round trips beside: {outcome.rounds}; MiB resident warm, end, peak: {memory}")
    for finding in outcome.findings[:50]:
        console.print(f"finding: {finding}", markup=False)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
