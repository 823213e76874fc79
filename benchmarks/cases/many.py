"""Idle partitions: CPU and memory of three brokers with 10,000 of them, and the time to create 1,000.

Two clusters are idle at the same time, one with 10 partitions and one with 10,000, all with three replicas, so both see
the same disturbances. Their cost must grow with the number of brokers, not of partitions.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks import ours
from benchmarks.brokers import Brokers
from benchmarks.cases import Start
from benchmarks.cases.footprint import allow_descriptors
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.processes import resident_bytes
from tailrace.model.limits import MiB

FEW: Final = 10
MANY: Final = 10_000
PER_TOPIC: Final = 2_500
MADE: Final = 1_000
CREATIONS: Final = 3
SETTLE_SECONDS: Final = 10.0
WINDOWS: Final = 5
WINDOW_SECONDS: Final = 20.0
FSYNC: Final[Fsync] = "always"


def many_partitions(_: Start, folder: Path) -> Iterator[Outcome]:
    allow_descriptors()
    with ours.cluster(folder / "few", FSYNC) as calm, ours.cluster(folder / "many", FSYNC) as full:
        yield outcome("until 1,000 new partitions are led", "s", [seconds_to_create(calm) for _ in range(CREATIONS)])
        calm.create_topic("few", FEW)
        began = time.perf_counter()
        for number in range(MANY // PER_TOPIC):
            full.create_topic(f"many-{number}", PER_TOPIC)
        yield outcome("until 10,000 new partitions are led and whole", "s", [time.perf_counter() - began], at_most=60)
        time.sleep(SETTLE_SECONDS)
        yield from idle(calm, full)


def seconds_to_create(brokers: Brokers) -> float:
    """From the request until every broker knows the leader of each partition."""
    began = time.perf_counter()
    brokers.ask_for_topic("made", MADE)
    brokers.wait_until_led("made", MADE)
    seconds = time.perf_counter() - began
    brokers.delete_topic("made")
    return seconds


def idle(calm: Brokers, full: Brokers) -> Iterator[Outcome]:
    computed: tuple[list[float], list[float]] = ([], [])
    for _ in range(WINDOWS):
        before = full.cpu_seconds(), calm.cpu_seconds()
        time.sleep(WINDOW_SECONDS)
        for kept, brokers, so_far in zip(computed, (full, calm), before, strict=True):
            kept.append((brokers.cpu_seconds() - so_far) / len(brokers.servers) / WINDOW_SECONDS * 1000)
    yield Outcome(
        name="idle with 10,000 partitions beside 10, a broker's CPU",
        fsync=FSYNC,
        acks="-",
        unit="ms/s",
        rounds=tuple(computed[0]),
        beside="one",
        beside_rounds=tuple(computed[1]),
        threshold=Threshold(of="ratio", at_most=2),
    )
    resident, descriptors = ([figure(pid) for pid in full.pids] for figure in (resident_megabytes, descriptors_open))
    yield outcome("idle with 10,000 partitions, the largest broker", "MB", [max(resident)], at_most=250)
    yield outcome(
        "idle with 10,000 partitions, most descriptors of a broker", "files", [max(descriptors)], at_most=2_000
    )


def outcome(name: str, unit: str, rounds: list[float], *, at_most: float | None = None) -> Outcome:
    threshold = None if at_most is None else Threshold(of="value", at_most=at_most)
    return Outcome(name=name, fsync=FSYNC, acks="-", unit=unit, rounds=tuple(rounds), threshold=threshold)


def resident_megabytes(pid: int) -> float:
    return resident_bytes(pid) / MiB


def descriptors_open(pid: int) -> float:
    return float(len(os.listdir(f"/proc/{pid}/fd")))
