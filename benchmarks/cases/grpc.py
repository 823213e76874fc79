"""The gRPC door: unary calls with one message and with a hundred, streams, and consuming; with 1, 4 and 16 clients.

The queue whose service this is reported 2,149 messages a second at best, from 16 producers with batches of 100.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cases import Start
from benchmarks.door_servers import DoorServer, ServeDoors
from benchmarks.grpc_load import GrpcRun, GrpcWork, make_topic, measured
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold

ROUNDS: Final = 3
BATCH: Final = 100
CLIENTS: Final = (1, 4, 16)
PARTITIONS: Final = 3
BATCHES_WANTED: Final = 100_000  # messages for each second of the server's processor, with fsync never
ORIGINAL_BEST: Final = 2_149


def grpc(_: Start, folder: Path, fsync: Fsync, serve: ServeDoors) -> Iterator[Outcome]:
    with serve(folder, fsync, grpc_port=0) as server:
        make_topic(server.endpoints["grpc"], "bench", PARTITIONS)
        share = 1.0 if fsync == "never" else 0.25
        for clients in CLIENTS:
            runs = run_all(server, "produce", clients, BATCH, int(2_000 * share))
            yield from outcomes(f"gRPC: produce batches of {BATCH}, {named(clients)}", fsync, runs, BATCH)
        for clients in (1, 16):
            runs = run_all(server, "produce", clients, 1, int(4_000 * share))
            yield from outcomes(f"gRPC: produce single messages, {named(clients)}", fsync, runs, 1)
        for clients in CLIENTS:
            runs = run_all(server, "stream", clients, BATCH, int(2_000 * share))
            yield from outcomes(f"gRPC: produce streams of {BATCH}, {named(clients)}", fsync, runs, BATCH)
        for clients in CLIENTS:
            runs = run_all(server, "consume", clients, BATCH, int(1_000 * share))
            yield from outcomes(f"gRPC: consume batches of {BATCH}, {named(clients)}", fsync, runs, 0)


def run_all(server: DoorServer, does: str, clients: int, batch: int, calls: int) -> list[GrpcRun]:
    work = GrpcWork(
        address=server.endpoints["grpc"],
        pid=server.pid,
        does=does,  # type: ignore[arg-type]
        topic="bench",
        partitions=PARTITIONS,
        clients=clients,
        batch=batch,
        calls=calls,
    )
    return [measured(work) for _ in range(ROUNDS)]


def named(clients: int) -> str:
    return "1 client" if clients == 1 else f"{clients} clients"


def outcomes(name: str, fsync: Fsync, runs: list[GrpcRun], batch: int) -> Iterator[Outcome]:
    wanted = BATCHES_WANTED if batch == BATCH and fsync == "never" else None
    original = Threshold(of="value", at_least=ORIGINAL_BEST) if batch == BATCH else None
    per_core = Threshold(of="value", at_least=wanted) if wanted else None
    figures: tuple[tuple[str, str, Threshold | None, list[float]], ...] = (
        ("", "messages/s", original, [one.per_second for one in runs]),
        (", on one core", "messages/CPU s", per_core, [one.per_cpu_second for one in runs]),
        (", p99", "ms", None, [one.p99_ms for one in runs]),
    )
    for what, unit, bound, rounds in figures:
        yield Outcome(name=f"{name}{what}", fsync=fsync, acks="all", unit=unit, rounds=tuple(rounds), threshold=bound)
