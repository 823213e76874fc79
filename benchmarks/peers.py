"""`make bench-peers`: Apache Kafka 4.3 and our broker on the same machine, in one run, with the same clients; and our
queues beside those of RabbitMQ and NATS (see `queue_contests`).

All servers stay up for the whole run. A short first round warms them up: Kafka's JIT compiler has seen every path
before anything counts. Then, in three rounds, each contest runs against Kafka, ours without fsync (Kafka's default) and
ours with `always`, in an order that rotates. Topics are new, and deleted afterwards. Ratios are of medians. Then follow
three brokers of each, with three replicas (see `clusters`), the cleaners of compacted topics (see `cleaner_contest`),
and our Spark source against Spark's own (see `pipelines`).

Ours with `always` gets acks=all: with acks=1 the response would not wait for the fsync.

In bulk contests with librdkafka a minimal broker that does nearly nothing takes part as well (`least`): no broker can
be expected to exceed it. A threshold above that is lowered to most of it, and the table shows both.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import (
    cleaner_contest,
    clusters,
    contests,
    coordinated,
    kafka,
    ours,
    outcomes,
    pipelines,
    queue_contests,
    spark_contests,
    tables,
)
from benchmarks.connection import create_topic, delete_topic
from benchmarks.contests import Contest, Entrant, Figure
from benchmarks.fetched import Missing
from benchmarks.machine import machine_outcomes, scratch
from benchmarks.outcomes import Outcome, Threshold, acks_name
from benchmarks.processes import serving

ROUNDS: Final = 3
REACHABLE_PART: Final = 0.9  # of what the minimal broker reaches
AT_LEAST_AS_KAFKA: Final = 1.0  # no threshold is lowered below this: the minimal broker has bad rounds, too
WARM_UP_SCALE: Final = 0.3
PEER_LABEL: Final = "kafka"
LEAST_LABEL: Final = "least"
# With one broker each:
ALONE: Final[dict[str, Contest]] = contests.CONTESTS | coordinated.CONTESTS | queue_contests.CONTESTS
Found = dict[str, dict[str, list[Figure]]]  # by figure name, then by entrant label; one figure per round


def enter(stack: ExitStack, folder: Path) -> list[Entrant]:
    """Start all servers."""
    for name in (PEER_LABEL, "never", "always", LEAST_LABEL):
        (folder / name).mkdir()
    peer = stack.enter_context(kafka.serving(folder / PEER_LABEL))
    never = stack.enter_context(ours.broker(folder / "never", "never"))
    always = stack.enter_context(ours.broker(folder / "always", "always"))
    command = [sys.executable, "-m", "benchmarks.least", str(folder / LEAST_LABEL)]
    least = stack.enter_context(serving(LEAST_LABEL, command, log=folder / "least.log"))
    return [
        Entrant(label=PEER_LABEL, server=peer, acks=1),
        Entrant(label="never", server=never, acks=1),
        Entrant(label="always", server=always, acks=-1),
        Entrant(label=LEAST_LABEL, server=least, acks=1),
    ]


def compete(entrants: list[Entrant], names: list[str], progress: Progress) -> Found:
    found: Found = defaultdict(lambda: defaultdict(list))
    task = progress.add_task("", total=(ROUNDS + 1) * len(names) * len(entrants))
    for number in range(ROUNDS + 1):  # round 0 warms up
        for name in names:
            for position in range(len(entrants)):
                entrant = entrants[(position + number) % len(entrants)]
                if entrant.label == LEAST_LABEL and name not in contests.BULK:
                    continue
                progress.update(task, description=f"round {number} of {ROUNDS}: {name}, {entrant.label}")
                for figure in one_round(entrant, name, number):
                    if number:
                        found[figure.name][entrant.label].append(figure)
                progress.advance(task)
    return found


def one_round(entrant: Entrant, name: str, number: int) -> list[Figure]:
    host, port, topic = entrant.server.host, entrant.server.port, f"{name}-{number}"
    create_topic(host, port, topic)
    figures = ALONE[name](entrant, topic, 1.0 if number else WARM_UP_SCALE)
    delete_topic(host, port, topic)
    return figures


def judge(found: Found, entrants: list[Entrant]) -> list[Outcome]:
    """Ours compared with Kafka: thresholds apply without fsync; `always` and the minimal broker are only reported."""
    judged = []
    for entrant in entrants:
        for name, by_label in found.items():
            if entrant.label == PEER_LABEL or entrant.label not in by_label:
                continue
            first = by_label[entrant.label][0]
            is_least = entrant.label == LEAST_LABEL
            outcome = Outcome(
                name=f"the least a broker can do: {name}" if is_least else name,
                fsync="never" if is_least else entrant.label,
                acks=acks_name(entrant.acks if first.acks is None else first.acks),
                unit=first.unit,
                rounds=tuple(figure.value for figure in by_label[entrant.label]),
                beside="peer",
                beside_rounds=tuple(figure.value for figure in by_label[PEER_LABEL]),
                threshold=reachable(first.threshold, by_label) if entrant.label == "never" else None,
            )
            judged.append(outcome)
    return judged


def reachable(threshold: Threshold | None, by_label: Mapping[str, list[Figure]]) -> Threshold | None:
    """The threshold, lowered to most of what the minimal broker reaches against Kafka, if that is less."""
    if threshold is None or threshold.at_least is None or LEAST_LABEL not in by_label:
        return threshold
    least, peer = (median(figure.value for figure in by_label[label]) for label in (LEAST_LABEL, PEER_LABEL))
    most = max(AT_LEAST_AS_KAFKA, round(REACHABLE_PART * least / peer, 2))
    return threshold if threshold.at_least <= most else replace(threshold, at_least=most, asked=threshold.at_least)


def run(names: list[str]) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with scratch() as folder, Progress(*columns, console=Console(stderr=True)) as progress:
        found = list(machine_outcomes(folder))
        if wanted := [name for name in names if name in ALONE]:
            with ExitStack() as stack:
                entrants = enter(stack, folder)
                found += judge(compete(entrants, wanted, progress), entrants)
        if clusters.NAME in names:
            task = progress.add_task("", total=None)
            found += clusters.compete(folder, lambda what: progress.update(task, description=what))
        if cleaner_contest.NAME in names:
            task = progress.add_task("", total=None)
            found += cleaner_contest.compete(folder, lambda what: progress.update(task, description=what))
        if wanted := [name for name in names if name in queue_contests.PEERS]:
            task = progress.add_task("", total=None)
            found += queue_contests.compete(wanted, folder, lambda what: progress.update(task, description=what))
        if wanted := [name for name in names if name in spark_contests.CONTESTS]:
            task = progress.add_task("", total=None)
            found += pipelines.compete(wanted, folder, lambda what: progress.update(task, description=what))
        return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description="Compare our broker with Apache Kafka, RabbitMQ and NATS."
    )
    every = [*ALONE, clusters.NAME, cleaner_contest.NAME, *queue_contests.PEERS, *spark_contests.CONTESTS]
    parser.add_argument("contests", nargs="*", help=f"run only these: {', '.join(every)}")
    parser.add_argument("--write", action="store_true", help="put what named contests measure into the files, too")
    given = parser.parse_args()
    if unknown := [name for name in given.contests if name not in every]:
        parser.error(f"no such contest: {', '.join(unknown)}")
    names = given.contests or every
    if any(name not in queue_contests.PEERS for name in names):
        try:
            kafka.jars()
        except Missing as missing:
            print(f"bench-peers skipped: {missing}")
            return 0
    found = run(names)
    for outcome in found:
        print(json.dumps(outcome.as_json(), ensure_ascii=False))
    tables.show(found, title=f"Tailrace against Apache Kafka {kafka.VERSION}", beside="kafka")
    if given.write or not given.contests:
        lines = outcomes.write(found, "peers.jsonl", keeps_others=bool(given.contests))
        tables.put_into_readme(lines, marker="peers", beside="Kafka")
    return 1 if outcomes.missed(found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
