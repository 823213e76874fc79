"""The load: requests encoded before the clock starts, sent through one raw socket, responses checked for errors.

- bulk: the same 1 MB Produce request again and again, a few in flight, to one partition after the other;
- single: Produce requests of one record each, all encoded ahead, many in flight; for an idempotent producer with the
  right sequences;
- catch-up: Fetch from offset 0 to the end, one request after the other.

The same load is sent to the floor, which does not parse it. The load runs in its own process
(`python -m benchmarks.load WORK`), and reads the server's CPU time directly before and after.
"""

import gc
import json
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from benchmarks import frames
from benchmarks.answers import Answers, receive_answer
from benchmarks.batches import name_producer, random_batch
from benchmarks.connection import Connection, Refused, init_producer
from benchmarks.floor import PIECE_BYTES
from benchmarks.processes import Server, cpu_seconds, measure
from tailrace.model.limits import MiB

Kind = Literal["bulk", "single", "catch-up"]
Moved = tuple[int, int]  # requests and bytes
BULK_RECORDS: Final = 1000
BULK_VALUE_BYTES: Final = 1024
SINGLE_VALUE_BYTES: Final = 100
BULK_IN_FLIGHT: Final = 5
ANSWER_SPARE_BYTES: Final = MiB  # for the response fields besides the records
MAX_WAIT_MS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What to send to which server."""

    kind: Kind
    host: str
    port: int
    pid: int
    topic: str
    requests: int  # requests to send; for a catch-up, the end offset
    acks: int = 1
    in_flight: int = BULK_IN_FLIGHT
    partitions: int = 1  # bulk: these take turns
    idempotent: bool = False
    committed: bool = False  # a catch-up reads committed records only
    floor: bool = False  # the server is the floor: its responses have no error code and no offsets
    seconds_max: float = 20.0  # send nothing new after this long


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The work done, and the time and CPU it took."""

    requests: int
    bytes: int
    seconds: float
    cpu_seconds: float  # of the server

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes / self.seconds / 1e6

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_seconds_per_gigabyte(self) -> float:
        return self.cpu_seconds / self.bytes * 1e9


def encode_singles(work: Work, producer: tuple[int, int] | None) -> tuple[bytes, int]:
    """All requests concatenated, and the size of each, which is the same for all."""
    batch = random_batch(records=1, value_bytes=SINGLE_VALUE_BYTES)
    encoded = []
    for index in range(work.requests):
        if producer is not None:
            name_producer(batch, *producer, index)
        encoded.append(frames.produce(work.topic, batch, acks=work.acks, correlation=index))
    return b"".join(encoded), len(encoded[0])


def prepare_single(connection: Connection, work: Work) -> Callable[[], Moved]:
    """Keep `in_flight` requests in flight: answered ones are replaced by one write."""
    producer = init_producer(connection) if work.idempotent else None
    encoded, size = encode_singles(work, producer)
    answers = Answers(connection.socket, None if work.floor else frames.produce_error_at(work.topic))

    def run() -> Moved:
        view, send, clock = memoryview(encoded), connection.socket.sendall, time.perf_counter
        deadline = clock() + work.seconds_max
        wanted, sent = work.requests, 0
        while answers.taken < wanted:
            ahead = min(wanted, answers.taken + work.in_flight)
            send(view[sent * size : ahead * size])
            sent = ahead
            answers.take()
            if clock() > deadline:
                wanted = sent
        return sent, sent * size

    return run


def prepare_bulk(connection: Connection, work: Work) -> Callable[[], Moved]:
    """Send one large request again and again, changing only its correlation id and its partition."""
    batch = random_batch(records=BULK_RECORDS, value_bytes=BULK_VALUE_BYTES)
    request = bytearray(frames.produce(work.topic, batch, acks=work.acks))
    answers = Answers(connection.socket, None if work.floor else frames.produce_error_at(work.topic))
    partition_at = frames.produce_partition_at(work.topic)

    def run() -> Moved:
        deadline = time.perf_counter() + work.seconds_max
        sent = 0
        while sent < work.requests and time.perf_counter() < deadline:
            struct.pack_into(">i", request, frames.CORRELATION_AT, sent)
            struct.pack_into(">i", request, partition_at, sent % work.partitions)
            connection.socket.sendall(request)
            sent += 1
            while sent - answers.taken >= work.in_flight:
                answers.take()
        while answers.taken < sent:
            answers.take()
        return sent, sent * len(request)

    return run


def prepare_catch_up(connection: Connection, work: Work) -> Callable[[], Moved]:
    """Read to the end, which the floor marks with an empty piece."""
    buffer = memoryview(bytearray(PIECE_BYTES + ANSWER_SPARE_BYTES))
    request = frames.FetchRequest(work.topic, max_bytes=PIECE_BYTES, max_wait_ms=MAX_WAIT_MS, committed=work.committed)

    def run_floor() -> Moved:
        requests = total = 0
        while True:
            connection.socket.sendall(request.at(0))
            requests += 1
            got = len(receive_answer(connection.socket, buffer))
            total += got
            if not got:
                return requests, total

    def run() -> Moved:
        requests = total = offset = 0
        while offset < work.requests:
            connection.socket.sendall(request.at(offset))
            requests += 1
            error, records, _ = frames.read_fetched(receive_answer(connection.socket, buffer), work.topic)
            if error or not records:
                raise Refused(f"fetching {work.topic} at {offset}: error {error}, {len(records)} bytes")
            total += len(records)
            *_, offset = frames.next_offsets(records)
        return requests, total

    return run_floor if work.floor else run


def perform(work: Work) -> Measured:
    """Prepare, then measure."""
    prepare = {"bulk": prepare_bulk, "single": prepare_single, "catch-up": prepare_catch_up}[work.kind]
    with Connection(work.host, work.port) as connection:
        run = prepare(connection, work)
        connection.socket.settimeout(None)
        gc.collect()
        gc.disable()
        computed, began = cpu_seconds(work.pid), time.perf_counter()
        requests, moved = run()
        seconds = time.perf_counter() - began
        return Measured(requests=requests, bytes=moved, seconds=seconds, cpu_seconds=cpu_seconds(work.pid) - computed)


def measured(server: Server, kind: Kind, topic: str, requests: int, **options: Any) -> Measured:
    """Send the load to a server from a process of its own."""
    work = Work(
        kind=kind, host=server.host, port=server.port, pid=server.pid, topic=topic, requests=requests, **options
    )
    return Measured(**measure("benchmarks.load", work))


if __name__ == "__main__":
    print(json.dumps(asdict(perform(Work(**json.loads(sys.argv[1]))))))
