"""2,000 messages per second: latency until acknowledged, and until a waiting consumer has the message."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks import latency
from benchmarks.cases import Start
from benchmarks.connection import create_topic
from benchmarks.latency import Spread
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, acks_name
from benchmarks.processes import Server, measure

ROUNDS: Final = 3
RATE: Final = 2_000
SECONDS: Final = 2.0
NAMES: Final = {"produce": "produce at 2,000 msg/s", "delivery": "producer to waiting consumer at 2,000 msg/s"}


def steady(start: Start, folder: Path, fsync: Fsync, acks: int) -> Iterator[Outcome]:
    with start(folder, fsync) as broker:
        measured(broker, "warm-up", acks)
        found = [measured(broker, f"steady-{number}", acks) for number in range(ROUNDS)]
    for part, name in NAMES.items():
        for rank in ("p50", "p99"):
            yield Outcome(
                name=f"{name}, {rank}",
                fsync=fsync,
                acks=acks_name(acks),
                unit="ms",
                rounds=tuple(one[part].p50_ms if rank == "p50" else one[part].p99_ms for one in found),
            )


def measured(server: Server, topic: str, acks: int) -> dict[str, Spread]:
    create_topic(server.host, server.port, topic)
    work = latency.Work(host=server.host, port=server.port, topic=topic, acks=acks, rate=RATE, seconds=SECONDS)
    return {part: Spread(**spread) for part, spread in measure("benchmarks.latency", work).items()}
