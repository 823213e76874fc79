"""Three brokers with acks=all against one with acks=1: what replication costs.

The three respond once a majority has a message, the one as soon as it has appended it. On a machine with few cores the
three share what the one has for itself, so the CPU of all brokers is reported, too. Both stay up and take turns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import latency, ours, rdkafka
from benchmarks.brokers import Brokers
from benchmarks.cases import Start
from benchmarks.latency import Spread
from benchmarks.load import Measured
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, compared
from benchmarks.processes import measure
from tailrace.model.limits import KiB

ROUNDS: Final = 5
MESSAGES: Final = 300_000
WARM_UP_MESSAGES: Final = 30_000
PARTITIONS: Final = 3
RATE: Final = 2_000
STEADY_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The figures of one side in one round."""

    through: Measured
    spread: Spread  # Produce latency at the fixed rate


def replicated(_: Start, folder: Path, fsync: Fsync) -> Iterator[Outcome]:
    found: tuple[list[Round], list[Round]] = ([], [])
    with ours.cluster(folder / "three", fsync) as three, ours.cluster(folder / "one", fsync, 1) as one:
        sides = ((three, -1, found[0]), (one, 1, found[1]))
        for brokers, acks, _kept in sides:
            through(brokers, "warm-up", acks, WARM_UP_MESSAGES)
        for number in range(ROUNDS):
            for brokers, acks, kept in sides if number % 2 else reversed(sides):
                kept.append(one_round(brokers, number, acks))
    yield from outcomes(*found, fsync)


def one_round(brokers: Brokers, number: int, acks: int) -> Round:
    return Round(
        through=through(brokers, f"through-{number}", acks, MESSAGES),
        spread=steady(brokers, f"steady-{number}", acks),
    )


def through(brokers: Brokers, topic: str, acks: int, count: int) -> Measured:
    brokers.create_topic(topic, PARTITIONS)
    options = {"value_bytes": KiB, "partitions": PARTITIONS, "acks": acks}
    measured = rdkafka.measured(brokers.servers[0], "produce", topic, count, pids=brokers.pids, **options)
    brokers.delete_topic(topic)
    return measured


def steady(brokers: Brokers, topic: str, acks: int) -> Spread:
    brokers.create_topic(topic)
    leader = brokers.leader(topic)
    work = latency.Work(host=leader.host, port=leader.port, topic=topic, acks=acks, rate=RATE, seconds=STEADY_SECONDS)
    spread = Spread(**measure("benchmarks.latency", work)["produce"])
    brokers.delete_topic(topic)
    return spread


def outcomes(three: list[Round], one: list[Round], fsync: Fsync) -> Iterator[Outcome]:
    figures = {
        ("produce 1 KB messages", "MB/s"): lambda found: found.through.megabytes_per_second,
        ("produce 1 KB messages", "msg/s"): lambda found: found.through.requests_per_second,
        ("produce 1 KB messages, all brokers' CPU", "s/GB"): lambda found: found.through.cpu_seconds_per_gigabyte,
        ("produce at 2,000 msg/s, p50", "ms"): lambda found: found.spread.p50_ms,
        ("produce at 2,000 msg/s, p99", "ms"): lambda found: found.spread.p99_ms,
    }
    for (name, unit), figure in figures.items():
        title = f"3 brokers beside 1 with acks=1: {name}"
        yield compared(figure, three, one, name=title, unit=unit, fsync=fsync, acks="all", beside="one")
