"""Queues: messages taken and accepted per second through a share group, in batches of 500 and one by one.

All workers share one partition. Beside it stands what one plain consumer of the same client reads from the same topic,
which has nothing to lock and nothing to acknowledge. A broker locks at most 2,000 records of a partition at a time, so
of 100 workers that take batches only four have one at any time; the others wait.

The workers of a run are in one process with an event loop, which needs far more CPU than the broker: the broker's CPU
per message shows what the broker can do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import share_load
from benchmarks.cases import Start
from benchmarks.connection import create_topic
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome
from benchmarks.processes import Server
from benchmarks.share_load import Kind, ShareRun

ROUNDS: Final = 3
SECONDS: Final = 2.0
FILLED: Final = {"batches": 1_000_000, "singles": 50_000}  # messages by topic
SPARE: Final = 5_000  # messages that are left over, so that no worker waits at the end
READ_MESSAGES: Final = {"read-client": 200_000, "read-librdkafka": 500_000}
WORKERS: Final = (1, 10, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Who takes how many messages at a time."""

    kind: Kind
    workers: int
    one_by_one: bool = False

    @property
    def name(self) -> str:
        size = "one by one" if self.one_by_one else "batches of 500"
        many = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        client = {"client": "", "wire": ", wire client", "librdkafka": ", librdkafka"}[self.kind]
        return f"take and accept, {size}, {many}{client}"

    @property
    def topic(self) -> str:
        return "singles" if self.one_by_one else "batches"

    @property
    def plain(self) -> Kind:
        """The plain consumer to compare with."""
        return "read-librdkafka" if self.kind == "librdkafka" else "read-client"


SHAPES: Final = (
    Shape(kind="librdkafka", workers=1),
    *(Shape(kind="client", workers=workers) for workers in WORKERS),
    *(Shape(kind="client", workers=workers, one_by_one=True) for workers in WORKERS),
    Shape(kind="wire", workers=100, one_by_one=True),
)


def queues(start: Start, folder: Path, fsync: Fsync) -> Iterator[Outcome]:
    with start(folder, fsync) as broker:
        for topic, messages in FILLED.items():
            create_topic(broker.host, broker.port, topic)
            share_load.measured(broker, "fill", topic, messages, one_by_one=topic == "singles")
        for shape in SHAPES:
            taken(broker, shape, SECONDS / 4)  # warms up
            both = [(taken(broker, shape, SECONDS), plainly(broker, shape.plain)) for _ in range(ROUNDS)]
            yield Outcome(
                name=f"{shape.name}; beside plain consume",
                fsync=fsync,
                acks="all",
                unit="msg/s",
                rounds=tuple(one.per_second for one, _ in both),
                beside="one",
                beside_rounds=tuple(plain.per_second for _, plain in both),
            )
            yield Outcome(
                name=f"{shape.name}, broker's CPU",
                fsync=fsync,
                acks="all",
                unit="µs/msg",
                rounds=tuple(one.cpu_microseconds for one, _ in both),
            )


def taken(server: Server, shape: Shape, seconds: float) -> ShareRun:
    messages = FILLED[shape.topic] - SPARE
    options = {"seconds": seconds, "workers": shape.workers, "one_by_one": shape.one_by_one}
    return share_load.measured(server, shape.kind, shape.topic, messages, **options)


def plainly(server: Server, kind: Kind) -> ShareRun:
    return share_load.measured(server, kind, "batches", READ_MESSAGES[kind])
