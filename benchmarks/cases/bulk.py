"""1 MB requests of 1 KB records, produced and then fetched, against the floor in the same minute.

How fast a file can be written here varies by a factor of four with the kernel's other work, so each round runs floor
and broker directly after each other, in alternating order, and the ratio is the median over rounds of the ratio within
one. Files are removed after each round, before the kernel has to write them to the disk.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final

from benchmarks.cases import Start
from benchmarks.connection import create_topic, delete_topic
from benchmarks.floor import Mode
from benchmarks.load import BULK_RECORDS, Measured, measured
from benchmarks.outcomes import Outcome, Threshold, compared
from benchmarks.processes import Server, serving

ROUNDS: Final = 7
REQUESTS: Final = 600
WARM_UP_REQUESTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The figures of one server, round by round."""

    writes: list[Measured] = field(default_factory=list)
    reads: list[Measured] = field(default_factory=list)


def floor_process(folder: Path, mode: Mode) -> AbstractContextManager[Server]:
    command = [sys.executable, "-m", "benchmarks.floor", mode, str(folder / "floor")]
    return serving("floor", command, log=folder / "floor.log")


def floor_round(writer: Server, reader: Server, folder: Path, count: int) -> tuple[Measured, Measured]:
    written = measured(writer, "bulk", "floor", count, floor=True)
    read = measured(reader, "catch-up", "floor", 0, floor=True)
    (folder / "floor").unlink()
    return written, read


def broker_round(broker: Server, topic: str, count: int) -> tuple[Measured, Measured]:
    create_topic(broker.host, broker.port, topic)
    written = measured(broker, "bulk", topic, count)
    read = measured(broker, "catch-up", topic, count * BULK_RECORDS)
    delete_topic(broker.host, broker.port, topic)
    return written, read


def bulk(start: Start, folder: Path) -> Iterator[Outcome]:
    ours, floor = Rounds(), Rounds()
    with (
        start(folder, "never") as broker,
        floor_process(folder, "write") as writer,
        floor_process(folder, "read") as reader,
    ):
        floor_round(writer, reader, folder, WARM_UP_REQUESTS)
        broker_round(broker, "warm-up", WARM_UP_REQUESTS)
        for number in range(ROUNDS):
            if number % 2:
                keep(ours, broker_round(broker, f"bulk-{number}", REQUESTS))
            keep(floor, floor_round(writer, reader, folder, REQUESTS))
            if not number % 2:
                keep(ours, broker_round(broker, f"bulk-{number}", REQUESTS))
    yield from outcomes(ours, floor)


def keep(kept: Rounds, one: tuple[Measured, Measured]) -> None:
    kept.writes.append(one[0])
    kept.reads.append(one[1])


def outcomes(ours: Rounds, floor: Rounds) -> Iterator[Outcome]:
    writes, reads = (ours.writes, floor.writes), (ours.reads, floor.reads)
    speed, cpu = attrgetter("megabytes_per_second"), attrgetter("cpu_seconds_per_gigabyte")
    fast, cheap = Threshold(of="ratio", at_least=0.65), Threshold(of="ratio", at_most=1.6)
    for name, unit, figure, (own, other), threshold in (
        ("produce 1 KB records in 1 MB requests", "MB/s", speed, writes, fast),
        ("produce 1 KB records in 1 MB requests, CPU", "s/GB", cpu, writes, cheap),
        ("catch-up fetch", "MB/s", speed, reads, fast),
        ("catch-up fetch, CPU", "s/GB", cpu, reads, None),
    ):
        yield compared(
            figure, own, other, name=name, unit=unit, fsync="never", acks="1", beside="floor", threshold=threshold
        )
