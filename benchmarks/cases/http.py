"""The HTTP door: single messages sent and taken through the queue, and records written through the REST API."""

import http.client
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.cases import Start
from benchmarks.door_servers import DoorServer, ServeDoors
from benchmarks.http_load import HttpRun, HttpWork, measured
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold

ROUNDS: Final = 3
MESSAGE: Final = "x" * 100
SENT: Final = {1: 2_000, 100: 20_000}  # requests by connections
TAKEN: Final = {1: 1_000, 100: 3_000}
WRITTEN: Final = {1: {1: 2_000, 100: 20_000}, 100: {1: 300, 100: 2_000}}  # requests by records and connections


def http_queue(_: Start, folder: Path, fsync: Fsync, serve: ServeDoors) -> Iterator[Outcome]:
    with serve(folder, fsync, http_port=0) as server:
        port = server.port_of("http")
        producer = ask(port, "/producer/register", {"topic": "bench"})["producer_id"]
        sent = {"topic": "bench", "producer_id": producer, "message": MESSAGE}
        for connections, requests in SENT.items():
            wanted = 5_000 if fsync == "never" and connections > 1 else None
            share = requests if fsync == "never" else requests // 4
            runs = [
                run(server, "POST", "/producer/produce", [sent], share, connections=connections) for _ in range(ROUNDS)
            ]
            yield from outcomes(f"HTTP: send single messages, {named(connections)}", fsync, runs, wanted)
        for connections, requests in TAKEN.items():
            consumers = [ask(port, "/consumer/register", {"topic": "bench"})["consumer_id"] for _ in range(connections)]
            taken = [{"topic": "bench", "consumer_id": consumer} for consumer in consumers]
            runs = [
                run(server, "GET", "/consumer/consume", taken, requests, connections=connections) for _ in range(ROUNDS)
            ]
            of_each = "" if connections == 1 else " with a consumer each"
            yield from outcomes(f"HTTP: take single messages, {named(connections)}{of_each}", fsync, runs, None)


def http_rest(_: Start, folder: Path, fsync: Fsync, serve: ServeDoors) -> Iterator[Outcome]:
    with serve(folder, fsync, http_port=0) as server:
        ask(server.port_of("http"), "/v1/topics", {"name": "bench", "partitions": 1})
        for records, sizes in WRITTEN.items():
            body = {"records": [{"value": MESSAGE}] * records}
            for connections, requests in sizes.items():
                share = requests if fsync == "never" else requests // 4
                path = "/v1/topics/bench/records"
                runs = [run(server, "POST", path, [body], share, connections=connections) for _ in range(ROUNDS)]
                wanted = 5_000 if fsync == "never" and connections > 1 and records == 1 else None
                what = "single records" if records == 1 else f"{records} records a request"
                yield from outcomes(f"REST: write {what}, {named(connections)}", fsync, runs, wanted)


def ask(port: int, path: str, given: dict[str, Any]) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", path, json.dumps(given).encode())
    return json.loads(connection.getresponse().read())


def run(
    server: DoorServer, method: str, path: str, given: Sequence[Any], requests: int, *, connections: int
) -> HttpRun:
    return measured(
        HttpWork(
            port=server.port_of("http"),
            pid=server.pid,
            method=method,
            path=path,
            bodies=tuple(map(json.dumps, given)),
            requests=requests,
            connections=connections,
        )
    )


def named(connections: int) -> str:
    return "1 connection" if connections == 1 else f"{connections} connections"


def outcomes(name: str, fsync: Fsync, runs: list[HttpRun], wanted: float | None) -> Iterator[Outcome]:
    """`wanted`: so many for each second of the server's processor."""
    threshold = None if wanted is None else Threshold(of="value", at_least=wanted)
    figures: tuple[tuple[str, str, Threshold | None, list[float]], ...] = (
        ("", "requests/s", None, [one.per_second for one in runs]),
        (", on one core", "requests/CPU s", threshold, [one.per_cpu_second for one in runs]),
        (", p99", "ms", None, [one.p99_ms for one in runs]),
    )
    for what, unit, bound, rounds in figures:
        yield Outcome(name=f"{name}{what}", fsync=fsync, acks="all", unit=unit, rounds=tuple(rounds), threshold=bound)
