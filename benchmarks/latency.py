"""Latency at a fixed rate: until a Produce is acknowledged, and until a waiting consumer has the record.

One thread sends single-record Produce requests on a schedule, without waiting for responses, and reads from two
connections: the Produce responses, and those of a long-polling Fetch. On a new topic the record of request n has
offset n, so batches need not be parsed to know which record arrived. Times count from when a request was passed to the
kernel. `select` is used for its resolution of microseconds.
"""

import gc
import json
import select
import socket
import sys
import time
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Final

from benchmarks import frames
from benchmarks.answers import Answers, receive_answer
from benchmarks.batches import random_batch
from benchmarks.connection import Connection, Refused
from tailrace.model.limits import MiB

VALUE_BYTES: Final = 100
MAX_WAIT_MS: Final = 500
DRAIN_SECONDS: Final = 10.0
FETCH_MAX_BYTES: Final = MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    host: str
    port: int
    topic: str  # must be empty
    acks: int
    rate: int  # messages per second
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        return cls(p50_ms=median(seconds) * 1e3, p99_ms=quantiles(seconds, n=100)[98] * 1e3)


class Run:
    """One run: three times per record."""

    def __init__(self, produce: socket.socket, fetch: socket.socket, work: Work) -> None:
        self.total: Final = int(work.rate * work.seconds)
        self.sent_at: Final[list[float]] = []
        self.answered_at: Final[list[float]] = []
        self.delivered_at: Final[list[float]] = []
        self._work: Final = work
        self._produce: Final = produce
        self._fetch: Final = fetch
        self._answers: Final = Answers(produce, frames.produce_error_at(work.topic))
        self._request: Final = frames.FetchRequest(work.topic, max_bytes=FETCH_MAX_BYTES, max_wait_ms=MAX_WAIT_MS)
        self._buffer: Final = memoryview(bytearray(2 * FETCH_MAX_BYTES))
        batch = random_batch(records=1, value_bytes=VALUE_BYTES)
        self._encoded: Final = [
            frames.produce(work.topic, batch, acks=work.acks, correlation=index) for index in range(self.total)
        ]

    def run(self) -> None:
        self._fetch.sendall(self._request.at(0))
        began = time.perf_counter()
        deadline = began + self._work.seconds + DRAIN_SECONDS
        while len(self.delivered_at) < self.total or len(self.answered_at) < self.total:
            now = time.perf_counter()
            if now > deadline:
                raise Refused(
                    f"of {self.total} records only {len(self.answered_at)} were acknowledged and "
                    f"{len(self.delivered_at)} delivered {DRAIN_SECONDS} s after the last was due"
                )
            due = began + len(self.sent_at) / self._work.rate
            if len(self.sent_at) < self.total and now >= due:
                self.sent_at.append(now)
                self._produce.sendall(self._encoded[len(self.sent_at) - 1])
                continue
            pause = due - now if len(self.sent_at) < self.total else deadline - now
            self._receive(select.select([self._produce, self._fetch], [], [], pause)[0])

    def _receive(self, ready: list[socket.socket]) -> None:
        if self._produce in ready:
            self._answers.take()
            self.answered_at.extend([time.perf_counter()] * (self._answers.taken - len(self.answered_at)))
        if self._fetch in ready:
            error, records, _ = frames.read_fetched(receive_answer(self._fetch, self._buffer), self._work.topic)
            if error:
                raise Refused(f"fetching {self._work.topic}: error {error}")
            offset = max(frames.next_offsets(records), default=len(self.delivered_at))
            self.delivered_at.extend([time.perf_counter()] * (offset - len(self.delivered_at)))
            if offset < self.total:
                self._fetch.sendall(self._request.at(offset))


def perform(work: Work) -> dict[str, Spread]:
    with Connection(work.host, work.port) as produce, Connection(work.host, work.port) as fetch:
        run = Run(produce.socket, fetch.socket, work)
        gc.collect()
        gc.disable()
        run.run()
    return {
        "produce": Spread.of([after - before for before, after in zip(run.sent_at, run.answered_at, strict=True)]),
        "delivery": Spread.of([after - before for before, after in zip(run.sent_at, run.delivered_at, strict=True)]),
    }


if __name__ == "__main__":
    spreads = perform(Work(**json.loads(sys.argv[1])))
    print(json.dumps({name: asdict(spread) for name, spread in spreads.items()}))
