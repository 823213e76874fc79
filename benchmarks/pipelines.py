"""Our Spark source and archive against Spark's own Kafka source, both reading from one Apache Kafka.

Four partitions, `local[2]`, all columns, random keys and values; `spark_turns` describes how they take turns.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from benchmarks import kafka, spark_turns
from benchmarks.connector import Connector, connector
from benchmarks.fetched import Missing
from benchmarks.outcomes import Outcome
from benchmarks.processes import measure
from benchmarks.spark_contests import CONTESTS, Contest
from benchmarks.spark_topics import fill
from benchmarks.spark_turns import Work
from tailrace.pipeline.kafka.cluster import Cluster


def compete(names: list[str], folder: Path, tell: Callable[[str], None]) -> list[Outcome]:
    tell("downloading Spark's Kafka connector")
    try:
        beside = connector()
    except Missing as missing:
        print(f"comparison with Spark's Kafka source skipped: {missing}", file=sys.stderr)
        return []
    print(f"comparison with Spark's Kafka source: {beside}", file=sys.stderr)
    found = []
    with ExitStack() as stack:
        (folder / "spark-kafka").mkdir()
        broker = stack.enter_context(kafka.serving(folder / "spark-kafka"))
        cluster = stack.enter_context(Cluster(f"{broker.host}:{broker.port}"))
        totals: dict[str, int] = {}
        for name in names:
            contest = CONTESTS[name]
            tell(f"{beside}: {name}")
            if contest.load.topic not in totals:
                totals[contest.load.topic] = fill(cluster, contest.load)
            work = Work(
                kind=contest.kind,
                bootstrap=f"{broker.host}:{broker.port}",
                load=asdict(contest.load),
                total=totals[contest.load.topic],
                folder=str(folder / name),
                settings=beside.settings,
            )
            found.append(judge(contest, measure("benchmarks.spark_turns", work, beside.environment), beside))
    return found


def judge(contest: Contest, rates: dict[str, list[float]], beside: Connector) -> Outcome:
    verb = "reads" if contest.kind == "read" else "archives, beside its Parquet write,"
    return Outcome(
        name=f"Spark {beside.version} {verb} {contest.what}",
        fsync="-",
        acks="-",
        unit="rec/s",
        rounds=tuple(rates[spark_turns.OURS]),
        beside="peer",
        beside_rounds=tuple(rates[spark_turns.PEER]),
        threshold=contest.threshold,
    )
