"""Transactions per second, of one message and of a hundred, and the cost of reading only committed records.

Twenty concurrent producers with the wire client show what the broker can do; one librdkafka producer shows what a user
gets who commits one transaction after the other. For reading, every tenth transaction is aborted; raw Fetch requests
read all records, and then only committed ones, in turns. The responses carry the same bytes, so the ratio is the cost
of the last stable offset and of the list of aborted transactions.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks import load
from benchmarks.cases import Start
from benchmarks.connection import create_topic, settled_end
from benchmarks.load import Measured
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome
from benchmarks.processes import Server, measure
from benchmarks.transaction_load import Kind, Run, TransactionWork
from tailrace.model.limits import KiB

ROUNDS: Final = 3
SECONDS: Final = 2.0
SIZES: Final = (1, 100)  # messages per transaction
PRODUCERS: Final[dict[Kind, int]] = {"wire": 20, "librdkafka": 1}
VALUE_BYTES: Final = 100
READ_ROUNDS: Final = 9
TRANSACTIONS_READ: Final = 1_000
ABORT_EVERY: Final = 10


def transactions(start: Start, folder: Path, fsync: Fsync) -> Iterator[Outcome]:
    with start(folder, fsync) as broker:
        for messages in SIZES:
            for kind in PRODUCERS:
                topic = f"{kind}-{messages}"
                ran(broker, kind, topic, messages, SECONDS / 4)  # warms up
                found = [ran(broker, kind, topic, messages, SECONDS) for _ in range(ROUNDS)]
                yield Outcome(
                    name=named(kind, messages),
                    fsync=fsync,
                    acks="all",
                    unit="transactions/s",
                    rounds=tuple(one.per_second for one in found),
                )
        if fsync == "never":  # reading does not depend on fsync
            yield reading(broker)


def named(kind: Kind, messages: int) -> str:
    size = "1 message" if messages == 1 else f"{messages} messages"
    return f"transactions of {size}, {PRODUCERS[kind]} {'at once' if kind == 'wire' else 'librdkafka producer'}"


def ran(server: Server, kind: Kind, topic: str, messages: int, seconds: float) -> Run:
    return measured(server, kind, topic, messages, value_bytes=VALUE_BYTES, seconds=seconds)


def measured(server: Server, kind: Kind, topic: str, messages: int, **options: Any) -> Run:
    create_topic(server.host, server.port, topic)
    host, port, pid, producers = server.host, server.port, server.pid, PRODUCERS[kind]
    work = TransactionWork(
        kind=kind, host=host, port=port, pid=pid, topic=topic, messages=messages, producers=producers, **options
    )
    return Run(**measure("benchmarks.transaction_load", work))


def reading(server: Server) -> Outcome:
    end = filled(server, "read", TRANSACTIONS_READ)
    looks = [both_ways(server, "read", end, number) for number in range(READ_ROUNDS)]
    return Outcome(
        name="catch-up fetch of committed records beside all",
        fsync="never",
        acks="all",
        unit="MB/s",
        rounds=tuple(committed.megabytes_per_second for committed, _ in looks),
        beside="one",
        beside_rounds=tuple(everything.megabytes_per_second for _, everything in looks),
    )


def filled(server: Server, topic: str, count: int) -> int:
    """Fill a topic with transactions of 100 KB, some of them aborted, and return its end offset."""
    measured(server, "wire", topic, 100, value_bytes=KiB, transactions=count, abort_every=ABORT_EVERY)
    return settled_end(server.host, server.port, topic)


def both_ways(server: Server, topic: str, end: int, number: int) -> tuple[Measured, Measured]:
    """Read committed records, and all records; which comes first alternates with `number`."""
    first = number % 2 == 0
    found = {one: load.measured(server, "catch-up", topic, end, committed=one) for one in (first, not first)}
    return found[True], found[False]
