"""The DMQP door: PUSH and POP of 100 bytes, one at a time and pipelined, over 1 and 100 connections.

A POP is a lock, a durable acceptance, and only then an answer; a topic's three shards give one message each at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.cases import Start
from benchmarks.dmqp_load import Kind, Measured, measured
from benchmarks.door_servers import DoorServer, ServeDoors
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold

ROUNDS: Final = 3
PIPELINED_AT_LEAST: Final = 15_000  # PUSHes per second over one connection, with fsync never


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    kind: Kind
    connections: int
    under_way: int
    requests: int
    secure: bool = False

    @property
    def name(self) -> str:
        many = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        how = f"{self.under_way} under way" if self.under_way > 1 else "one at a time"
        return f"DMQP {self.kind.upper()}, {how}, {many}{', TLS' if self.secure else ''}"


SHAPES: Final = (
    Shape(kind="push", connections=1, under_way=500, requests=60_000),
    Shape(kind="push", connections=1, under_way=500, requests=60_000, secure=True),
    Shape(kind="push", connections=100, under_way=50, requests=60_000),
    Shape(kind="push", connections=1, under_way=1, requests=2_000),
    Shape(kind="push", connections=100, under_way=1, requests=20_000),
    Shape(kind="pop", connections=1, under_way=1, requests=1_000),
    Shape(kind="pop", connections=100, under_way=1, requests=2_000),
)


def dmqp(_: Start, folder: Path, fsync: Fsync, serve: ServeDoors) -> Iterator[Outcome]:
    with (
        serve(folder / "plain", fsync, dmqp_port=0, dmqp_security_protocol="PLAINTEXT") as plain,
        serve(folder / "tls", fsync, dmqp_port=0) as secured,
    ):
        for shape in SHAPES:
            rounds = [one_run(secured if shape.secure else plain, shape) for _ in range(ROUNDS)]
            is_main = shape is SHAPES[0] and fsync == "never"
            yield Outcome(
                name=shape.name,
                fsync=fsync,
                acks="all",
                unit="requests/s",
                rounds=tuple(one.per_second for one in rounds),
                threshold=Threshold(of="value", at_least=PIPELINED_AT_LEAST) if is_main else None,
            )
            for figure, unit, values in (
                ("p99", "ms", tuple(one.p99_ms for one in rounds)),
                ("server's CPU", "µs/request", tuple(one.cpu_microseconds for one in rounds)),
            ):
                yield Outcome(name=f"{shape.name}, {figure}", fsync=fsync, acks="all", unit=unit, rounds=values)


def one_run(server: DoorServer, shape: Shape) -> Measured:
    return measured(
        kind=shape.kind,
        port=server.port_of("dmqp"),
        pid=server.pid,
        requests=shape.requests,
        connections=shape.connections,
        under_way=shape.under_way,
        certificate=server.certificate if shape.secure else "",
    )
