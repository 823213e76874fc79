"""The footprint of a broker: time to start, memory when idle, open connections; and what its doors add."""

import resource
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import frames
from benchmarks.batches import random_batch
from benchmarks.cases import Start
from benchmarks.connection import Connection, Refused, create_topic
from benchmarks.door_servers import DOOR_PORTS, in_broker
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.processes import Server, resident_bytes
from tailrace.model.limits import MiB

STARTS: Final = 5
CONNECTIONS: Final = 2_000
DESCRIPTORS_SPARE: Final = 200
SETTLE_SECONDS: Final = 1.0
FSYNC: Final[Fsync] = "always"


def footprint(start: Start, folder: Path) -> Iterator[Outcome]:
    yield Outcome(
        name="process start to first acknowledged produce",
        fsync=FSYNC,
        acks="all",
        unit="s",
        rounds=tuple(seconds_to_first_answer(start, folder) for _ in range(STARTS)),
        threshold=Threshold(of="value", at_most=0.5),
    )
    allow_descriptors()
    with start(folder, FSYNC) as broker:
        produce_one(broker)
        time.sleep(SETTLE_SECONDS)
        yield Outcome(
            name="resident when idle",
            fsync=FSYNC,
            acks="all",
            unit="MB",
            rounds=(resident_bytes(broker.pid) / MiB,),
            threshold=Threshold(of="value", at_most=60),
        )
        yield from held(broker)


def door_footprint(_: Start, folder: Path) -> Iterator[Outcome]:
    """A broker with all doors open, beside one with Kafka's alone; each goes first in turn."""
    kinds: dict[bool, dict[str, object]] = {False: {}, True: dict.fromkeys(DOOR_PORTS, 0)}
    seconds: dict[bool, list[float]] = {False: [], True: []}
    resident: dict[bool, list[float]] = {False: [], True: []}
    for number in range(STARTS):
        for has_doors in (number % 2 == 0, number % 2 == 1):
            with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as fresh:
                began = time.perf_counter()
                with in_broker(Path(fresh), FSYNC, **kinds[has_doors]) as server:
                    seconds[has_doors].append(time.perf_counter() - began)
                    time.sleep(SETTLE_SECONDS)
                    resident[has_doors].append(resident_bytes(server.pid) / MiB)
    for name, unit, figures in (("process start to ready", "s", seconds), ("resident when idle", "MB", resident)):
        yield Outcome(
            name=f"{name}, all doors open; beside Kafka's alone",
            fsync=FSYNC,
            acks="all",
            unit=unit,
            rounds=tuple(figures[True]),
            beside="one",
            beside_rounds=tuple(figures[False]),
        )


def seconds_to_first_answer(start: Start, folder: Path) -> float:
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as fresh:
        began = time.perf_counter()
        with start(Path(fresh), FSYNC) as broker:
            produce_one(broker)
            return time.perf_counter() - began


def produce_one(broker: Server) -> None:
    create_topic(broker.host, broker.port, "first")
    with Connection(broker.host, broker.port) as connection:
        answer = connection.ask(frames.produce("first", random_batch(records=1, value_bytes=100), acks=-1))
        if error := struct.unpack_from(">h", answer, frames.produce_error_at("first"))[0]:
            raise Refused(f"producing the first message failed with error {error}")


def allow_descriptors() -> None:
    """Raise the limit of open files for this process and for brokers that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + DESCRIPTORS_SPARE
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


def held(broker: Server) -> Iterator[Outcome]:
    """Open all connections, then send a request on each, so that all are open at the first request."""
    with ExitStack() as stack:
        opened = [stack.enter_context(Connection(broker.host, broker.port)) for _ in range(CONNECTIONS)]
        answered = sum(1 for connection in opened if not any(connection.ask(frames.api_versions())[4:6]))
        resident = resident_bytes(broker.pid) / MiB
    yield Outcome(
        name="connections held, all answering",
        fsync=FSYNC,
        acks="all",
        unit="connections",
        rounds=(float(answered),),
        threshold=Threshold(of="value", at_least=CONNECTIONS),
    )
    yield Outcome(name="resident with 2,000 connections", fsync=FSYNC, acks="all", unit="MB", rounds=(resident,))
