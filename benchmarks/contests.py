"""The contests between Kafka and our broker: each takes an entrant and a new topic, and returns figures.

`scale` shortens a contest for the warm-up round. A figure may have a threshold on the ratio of ours to Kafka's.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from benchmarks import latency, load, rdkafka
from benchmarks.latency import Spread
from benchmarks.load import Measured
from benchmarks.outcomes import Threshold
from benchmarks.processes import Server, measure
from tailrace.model.limits import KiB

IN_FLIGHT: Final = 100
SINGLE_REQUESTS: Final = 30_000
RATE: Final = 2_000
STEADY_SECONDS: Final = 3.0
VALUE_BYTES: Final = 100
PASSES: Final = 3  # a single pass takes a second, too short on shared cores

BETTER_PRODUCE: Final = Threshold(of="ratio", at_least=1.3)
BETTER_CONSUME: Final = Threshold(of="ratio", at_least=1.1)
BETTER_SINGLE: Final = Threshold(of="ratio", at_least=3)
BETTER_P99: Final = Threshold(of="ratio", at_most=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A server under test, and the acks its producers use."""

    label: str
    server: Server
    acks: int

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.server.pid,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number of one round."""

    name: str
    unit: str
    value: float
    threshold: Threshold | None = None
    acks: int | None = None  # None: the acks of the entrant


Contest = Callable[[Entrant, str, float], list[Figure]]


def rdkafka_work(
    entrant: Entrant, topic: str, kind: rdkafka.Kind, messages: int, size: int = VALUE_BYTES
) -> rdkafka.Work:
    server = entrant.server
    return rdkafka.Work(
        kind=kind,
        host=server.host,
        port=server.port,
        pids=entrant.pids,
        topic=topic,
        messages=messages,
        value_bytes=size,
        acks=entrant.acks,
        rate=RATE,
    )


def through(entrant: Entrant, topic: str, scale: float, *, messages: int, size: int) -> list[Figure]:
    """Produce and consume the messages with librdkafka."""
    wanted = int(messages * scale)
    put, got = (_together(rdkafka_work(entrant, topic, kind, wanted, size)) for kind in ("produce", "consume"))
    label = f"{size} B messages" if size < KiB else f"{size // KiB} KB messages"
    return [
        Figure(name=f"produce {label}", unit="MB/s", value=put.megabytes_per_second, threshold=BETTER_PRODUCE),
        Figure(name=f"produce {label}, broker's CPU", unit="s/GB", value=put.cpu_seconds_per_gigabyte),
        Figure(name=f"consume {label}", unit="MB/s", value=got.megabytes_per_second, threshold=BETTER_CONSUME),
    ]


def _together(work: rdkafka.Work) -> Measured:
    """Several passes one after the other, each with a new client, added up as one."""
    each = [Measured(**measure("benchmarks.rdkafka", work)) for _ in range(PASSES)]
    return Measured(**{name: sum(getattr(one, name) for one in each) for name in asdict(each[0])})


def single_raw(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    count = int(SINGLE_REQUESTS * scale)
    found = load.measured(entrant.server, "single", topic, count, acks=entrant.acks, in_flight=IN_FLIGHT)
    name = "single-record requests, raw socket"
    return [Figure(name=name, unit="requests/s", value=found.requests_per_second, threshold=BETTER_SINGLE)]


def single_librdkafka(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    work = rdkafka_work(entrant, topic, "single", int(SINGLE_REQUESTS * scale))
    found = Measured(**measure("benchmarks.rdkafka", work))
    name = "single-record requests, librdkafka"
    return [Figure(name=name, unit="requests/s", value=found.requests_per_second, threshold=BETTER_SINGLE)]


def steady_raw(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    work = latency.Work(
        host=entrant.server.host,
        port=entrant.server.port,
        topic=topic,
        acks=entrant.acks,
        rate=RATE,
        seconds=STEADY_SECONDS * scale,
    )
    found = {part: Spread(**spread) for part, spread in measure("benchmarks.latency", work).items()}
    return [
        *figures("produce at 2,000 msg/s, raw socket", found["produce"], BETTER_P99),
        *figures("producer to waiting consumer at 2,000 msg/s", found["delivery"], None),
    ]


def steady_librdkafka(entrant: Entrant, topic: str, scale: float) -> list[Figure]:
    work = rdkafka_work(entrant, topic, "latency", int(RATE * STEADY_SECONDS * scale))
    spread = Spread(**measure("benchmarks.rdkafka", work))
    return figures("produce at 2,000 msg/s, librdkafka", spread, BETTER_P99)


def figures(name: str, spread: Spread, threshold: Threshold | None) -> list[Figure]:
    return [
        Figure(name=f"{name}, p50", unit="ms", value=spread.p50_ms),
        Figure(name=f"{name}, p99", unit="ms", value=spread.p99_ms, threshold=threshold),
    ]


BULK: Final[dict[str, Contest]] = {
    "1-kb": partial(through, messages=500_000, size=1024),
    "100-b": partial(through, messages=2_500_000, size=100),
}
CONTESTS: Final[dict[str, Contest]] = BULK | {
    "single-raw": single_raw,
    "single-librdkafka": single_librdkafka,
    "steady-raw": steady_raw,
    "steady-librdkafka": steady_librdkafka,
}
