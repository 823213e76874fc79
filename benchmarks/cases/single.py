"""One record per request, 100 requests in flight on one connection: the fixed cost of a request."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks import load
from benchmarks.cases import Start
from benchmarks.connection import create_topic
from benchmarks.load import Measured
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold, acks_name
from benchmarks.processes import Server

ROUNDS: Final = 3
REQUESTS: Final = 60_000
IN_FLIGHT: Final = 100
SECONDS_MAX: Final = 4.0
THRESHOLDS: Final = {
    1: Threshold(of="value", at_least=30_000),
    -1: Threshold(of="value", at_least=20_000),
}


def single(start: Start, folder: Path, fsync: Fsync) -> Iterator[Outcome]:
    """acks=1 without a producer id, and acks=all with an idempotent producer."""
    with start(folder, fsync) as broker:
        for acks in (1, -1):
            measured(broker, f"warm-up-{acks_name(acks)}", acks, REQUESTS // 10)
            found = [measured(broker, f"single-{acks_name(acks)}-{number}", acks, REQUESTS) for number in range(ROUNDS)]
            yield Outcome(
                name="single-record requests" + (", idempotent" if acks == -1 else ""),
                fsync=fsync,
                acks=acks_name(acks),
                unit="requests/s",
                rounds=tuple(one.requests_per_second for one in found),
                threshold=THRESHOLDS[acks] if fsync == "never" else None,
            )


def measured(server: Server, topic: str, acks: int, count: int) -> Measured:
    create_topic(server.host, server.port, topic)
    options = {"acks": acks, "idempotent": acks == -1, "in_flight": IN_FLIGHT, "seconds_max": SECONDS_MAX}
    return load.measured(server, "single", topic, count, **options)
