"""The load of the DMQP door: one process, many connections, each with so many requests under way.

Requests are encoded before the clock starts, and answers are counted by their size, which is the same for all, and
checked for their status. Runs in its own process (`python -m benchmarks.dmqp_load WORK`).
"""

import gc
import json
import selectors
import socket
import ssl
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from benchmarks.processes import cpu_seconds, measure
from tailrace.doors.dmqp.codec import HEADER_BYTES, LAYOUT, Method, Status

Kind = Literal["push", "pop"]
PAYLOAD_BYTES: Final = 100
READ_BYTES: Final = 256 * 1024
TOPIC_ID: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    kind: Kind
    port: int
    pid: int
    requests: int
    connections: int = 1
    under_way: int = 1  # requests of each connection without an answer
    certificate: str = ""  # with TLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    requests: int
    seconds: float
    cpu_seconds: float  # of the server
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_microseconds(self) -> float:
        return self.cpu_seconds / self.requests * 1e6


class Client:
    """One connection."""

    def __init__(self, work: Work) -> None:
        plain = socket.create_connection(("127.0.0.1", work.port), 30)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket: socket.socket = plain
        if work.certificate:
            self.socket = ssl.create_default_context(cafile=work.certificate).wrap_socket(
                plain, server_hostname="127.0.0.1"
            )
        payload = bytes(PAYLOAD_BYTES) if work.kind == "push" else b""
        method = Method.PUSH if work.kind == "push" else Method.POP
        self._request = LAYOUT.pack(0, len(payload), method, TOPIC_ID, 0, 0) + payload
        self._answer_bytes = HEADER_BYTES + (0 if work.kind == "push" else PAYLOAD_BYTES)
        self._begun: deque[float] = deque()
        self._read = bytearray()

    def send(self, count: int) -> None:
        self._begun.extend([time.perf_counter()] * count)
        self.socket.sendall(self._request * count)

    def receive(self, took: list[float]) -> int:
        """How many answers have come."""
        self._read += self.socket.recv(READ_BYTES)
        while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            self._read += self.socket.recv(READ_BYTES)
        count = len(self._read) // self._answer_bytes
        now = time.perf_counter()
        for number in range(count):
            _, _, _, _, status, _ = LAYOUT.unpack_from(self._read, number * self._answer_bytes)
            if status != Status.OK:
                raise SystemExit(f"status {status}")
            took.append(now - self._begun.popleft())
        del self._read[: count * self._answer_bytes]
        return count


def run(work: Work) -> Measured:
    clients = [Client(work) for _ in range(work.connections)]
    waiting = selectors.DefaultSelector()
    for client in clients:
        waiting.register(client.socket, selectors.EVENT_READ, client)
    gc.disable()
    took: list[float] = []
    cpu, begun, sent, answered = cpu_seconds(work.pid), time.perf_counter(), 0, 0
    for client in clients:
        sent += min(work.under_way, work.requests - sent)
        client.send(work.under_way)
    while answered < sent:
        for key, _ in waiting.select():
            count = key.data.receive(took)
            answered += count
            more = min(count, work.requests - sent)
            if more > 0:
                sent += more
                key.data.send(more)
    seconds = time.perf_counter() - begun
    took.sort()
    return Measured(
        requests=answered,
        seconds=seconds,
        cpu_seconds=cpu_seconds(work.pid) - cpu,
        p50_ms=1000 * took[len(took) // 2],
        p99_ms=1000 * took[int(len(took) * 0.99)],
    )


def measured(**work: Any) -> Measured:
    return Measured(**measure("benchmarks.dmqp_load", Work(**work)))


if __name__ == "__main__":
    json.dump(asdict(run(Work(**json.loads(sys.argv[1])))), sys.stdout)
