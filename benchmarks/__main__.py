"""`make bench`: measure our broker against the floor, and three brokers against one, and check the thresholds.

Exits 1 if a threshold is missed.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import kafka, ours, outcomes, tables
from benchmarks.cases import Start
from benchmarks.cases.bulk import bulk
from benchmarks.cases.cleaner import cleaner
from benchmarks.cases.dmqp import dmqp
from benchmarks.cases.failover import failover
from benchmarks.cases.footprint import door_footprint, footprint
from benchmarks.cases.groups import groups
from benchmarks.cases.grpc import grpc
from benchmarks.cases.http import http_queue, http_rest
from benchmarks.cases.many import many_partitions
from benchmarks.cases.nearest import nearest
from benchmarks.cases.queues import queues
from benchmarks.cases.replicated import replicated
from benchmarks.cases.restart import restart
from benchmarks.cases.single import single
from benchmarks.cases.spark import spark
from benchmarks.cases.steady import steady
from benchmarks.cases.tls import tls
from benchmarks.cases.transactions import transactions
from benchmarks.door_servers import ServeDoors, at_gateway, in_broker
from benchmarks.machine import machine_outcomes, scratch
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome
from benchmarks.processes import Server

Case = Callable[[Start, Path], Iterator[Outcome]]


def machine(_: Start, folder: Path) -> Iterator[Outcome]:
    yield from machine_outcomes(folder)


def door_cases(prefix: str, serve: ServeDoors) -> dict[str, Case]:
    """One for each door and value of fsync."""
    doors = {"http": http_queue, "rest": http_rest, "grpc": grpc, "dmqp": dmqp}
    fsyncs: tuple[tuple[str, Fsync], ...] = (("", "never"), ("-always", "always"))

    def named(case: Callable[..., Iterator[Outcome]], start: Start, folder: Path, fsync: Fsync) -> Iterator[Outcome]:
        for one in case(start, folder, fsync, serve):
            yield replace(one, name=f"{prefix.replace('-', ', ')}{one.name}")

    return {
        f"{prefix}{name}{suffix}": partial(named, case, fsync=fsync)
        for name, case in doors.items()
        for suffix, fsync in fsyncs
    }


CASES: Final[dict[str, Case]] = {
    "machine": machine,
    "bulk": bulk,
    "single": partial(single, fsync="never"),
    "single-always": partial(single, fsync="always"),
    "steady": partial(steady, fsync="never", acks=1),
    "steady-always": partial(steady, fsync="always", acks=-1),
    "groups": partial(groups, fsync="never"),
    "groups-always": partial(groups, fsync="always"),
    "transactions": partial(transactions, fsync="never"),
    "transactions-always": partial(transactions, fsync="always"),
    "queues": partial(queues, fsync="never"),
    "queues-always": partial(queues, fsync="always"),
    "footprint": footprint,
    "spark": spark,
}
CLUSTER_CASES: Final[dict[str, Case]] = {  # these always start our brokers, with --kafka too
    "replicated": partial(replicated, fsync="never"),
    "replicated-always": partial(replicated, fsync="always"),
    "nearest": nearest,
    "tls": tls,
    "many": many_partitions,
    "restart": restart,
    "cleaner": cleaner,
    "doors": door_footprint,
    **door_cases("", in_broker),
    **door_cases("gateway-", at_gateway),
    "failover": failover,
}


def start_kafka(folder: Path, _: ours.Fsync) -> AbstractContextManager[Server]:
    return kafka.serving(folder)


def run(names: list[str], start: Start) -> list[Outcome]:
    """Run cases one after the other, each in its own folder, and print outcomes as they come."""
    found: list[Outcome] = []
    console = Console(stderr=True)
    with scratch() as folder:
        for name in names:
            own = folder / name
            own.mkdir()
            with console.status(f"{name} …"):
                for outcome in (CASES | CLUSTER_CASES)[name](start, own):
                    print(json.dumps(outcome.as_json(), ensure_ascii=False), flush=True)
                    found.append(outcome)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    every = [*CASES, *CLUSTER_CASES]
    parser.add_argument("cases", nargs="*", help=f"run only these: {', '.join(every)}")
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka instead, without writing files")
    parser.add_argument("--write", action="store_true", help="put what named cases measure into the files, too")
    given = parser.parse_args()
    if unknown := [name for name in given.cases if name not in every]:
        parser.error(f"no such case: {', '.join(unknown)}")
    by_default = list(CASES) if given.kafka else every
    found = run(given.cases or by_default, start_kafka if given.kafka else ours.broker)
    tables.show(found, title="Tailrace against the floor, and three brokers against one", beside="beside")
    if (given.write or not given.cases) and not given.kafka:
        lines = outcomes.write(found, "bench.jsonl", keeps_others=bool(given.cases))
        tables.put_into_readme(lines, marker="bench", beside="beside")
    return 1 if outcomes.missed(found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
