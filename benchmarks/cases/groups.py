"""Groups: offset commits per second, and the duration of a rebalance when one more member joins, by protocol.

A rebalance ends when every member has its new assignment. Members send heartbeats every tenth of a second, so a round
of the protocol takes a twentieth on average. In the classic protocol all members rejoin at once. In KIP-848 a member
first gives up partitions and reports that, before another gets them; members that keep their partitions continue to
work.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cases import Start
from benchmarks.group_load import GroupWork
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome
from benchmarks.processes import Server, measure

ROUNDS: Final = 3
CONNECTIONS: Final = 50
SECONDS: Final = 2.0
MEMBER_COUNTS: Final = (2, 50, 200)


def groups(start: Start, folder: Path, fsync: Fsync) -> Iterator[Outcome]:
    with start(folder, fsync) as broker:
        yield Outcome(
            name=f"offset commits, {CONNECTIONS} groups",
            fsync=fsync,
            acks="all",
            unit="commits/s",
            rounds=measured(broker, "commits", CONNECTIONS, SECONDS),
        )
        for kind in ("classic", "consumer") if fsync == "always" else ():
            for count in MEMBER_COUNTS:
                yield Outcome(
                    name=f"rebalance of {count} members, {kind}",
                    fsync=fsync,
                    acks="all",
                    unit="ms",
                    rounds=measured(broker, kind, count),
                )


def measured(server: Server, kind: str, count: int, seconds: float = 0.0, rounds: int = ROUNDS) -> tuple[float, ...]:
    work = GroupWork(kind=kind, host=server.host, port=server.port, count=count, rounds=rounds, seconds=seconds)
    return tuple(measure("benchmarks.group_load", work))
