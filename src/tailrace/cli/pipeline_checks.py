"""What a pipeline command checks before it starts Spark.

A JVM takes seconds to start; a mistyped topic or folder can be named in a fraction of one. So each command first checks
all that can be checked without Spark: options, folders, whether brokers answer and have the topics. The jobs check the
same again when they run, as a topic may be deleted in between, and as jobs are started from Python, too.

Brokers are asked once and nothing is retried, other than by the jobs themselves: a person is waiting.
"""

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tailrace.cli.failure import Failed, Misused
from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import NoBrokerAvailable, NoSuchTopic, PipelineFailed
from tailrace.pipeline.histories.archive_options import archive_options
from tailrace.pipeline.histories.committing import snapshot_for_writing
from tailrace.pipeline.histories.locking import demand_unlocked
from tailrace.pipeline.histories.reading import snapshot_of, undamaged_snapshot_of
from tailrace.pipeline.jvm.java import NoJava, find_java
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.option_names import access_of
from tailrace.pipeline.replaying.parameters import ReplayParameters, demand_compatible, ranges_of, with_bound
from tailrace.pipeline.upkeep.safety_check import checked_snapshot

ANSWER_TIMEOUT_S: Final = 10.0  # for a broker that accepts connections and does not answer
SPARK_PACKAGES: Final = ("pyspark", "pyarrow", "numpy")
LOCAL_MASTER: Final = re.compile(r"local(\[(\*|\d+)(\s*,\s*\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
OTHER_MASTER: Final = re.compile(r"yarn|[a-z][a-z0-9+.-]*://.+")
HOW_TO_REACH_BROKERS: Final = "start one with `tailrace serve`, or name another with --bootstrap or TAILRACE_BOOTSTRAP"


def check_spark(master: str) -> None:
    """That Spark and a Java are installed, and that the master's address can be one."""
    for package in SPARK_PACKAGES:
        if find_spec(package) is None:
            raise Failed(f"this command needs Spark, and {package} is not installed: pip install 'tailrace[spark]'")
    if not LOCAL_MASTER.fullmatch(master) and not OTHER_MASTER.fullmatch(master):
        raise Misused(f"--master {master}: it is local[*], local[4], spark://HOST:PORT, yarn or k8s://HOST:PORT.")
    try:
        find_java()
    except NoJava as none:
        raise Failed(str(none)) from None


def check_archive(bootstrap: str, to: str, *, topics: Sequence[str], pattern: str, options: Mapping[str, str]) -> None:
    asked = archive_options(bootstrap, topics=topics, pattern=pattern, options=options)
    if pattern:
        _demand_expression(pattern)
    history = Path(to).absolute()
    snapshot_for_writing(history)
    demand_unlocked(history, "archive")
    check_topics(asked.access, topics)


def check_audit(history: str, bootstrap: str, options: Mapping[str, str]) -> None:
    undamaged_snapshot_of(Path(history).absolute())
    if bootstrap:
        check_topics(access_of(bootstrap, options), ())  # topics that are gone are notes of the audit


def check_replay(
    history: str, bootstrap: str, *, topic: str, into: str, where: str, start: str, end: str, rate: float,
    keep_partition: bool, options: Mapping[str, str],
) -> None:  # fmt: skip
    demand_compatible(where, rate)
    folder = Path(history).absolute()
    partitions = ranges_of(snapshot_of(folder), topic)
    wanted = ReplayParameters(replay_id="", access=access_of(bootstrap, options), history=str(folder), into=into)
    with_bound(with_bound(wanted, start, is_start=True), end, is_start=False)
    count = check_topics(wanted.access, [into])[into]
    highest = max(of.partition for of in partitions)
    if keep_partition and 0 < count <= highest:
        raise PipelineFailed(
            f"{topic}-{highest} has no partition to go to: {into} has {count}. Leave out --keep-partition, or give a "
            f"topic of {highest + 1} partitions"
        )


def check_analyze(history: str, report: str) -> None:
    snapshot = snapshot_of(Path(history).absolute())
    if report:
        _demand_report(Path(report))
    if not any(one.count for one in snapshot.ranges):
        raise PipelineFailed(f"the history in {history} has no records yet; `tailrace pipeline archive` adds them")


def check_compact(history: str) -> None:
    folder = Path(history).absolute()
    checked_snapshot(folder)
    demand_unlocked(folder, "upkeep")


def check_postgres(
    bootstrap: str, *, topics: Sequence[str], dsn: str, checkpoint: str, options: Mapping[str, str]
) -> None:
    from tailrace.pipeline.postgres.connection_check import demand_database

    if not topics:
        raise Misused("--topics is empty: name a topic.")
    if Path(checkpoint).exists() and not Path(checkpoint).is_dir():
        raise PipelineFailed(f"--checkpoint {checkpoint} is a file: give a folder")
    check_topics(access_of(bootstrap, options), topics)
    demand_database(dsn)


def check_queue_tables(bootstrap: str, *, topics: Sequence[str], dsn: str, options: Mapping[str, str]) -> None:
    from tailrace.pipeline.postgres.connection_check import demand_database, demand_psycopg

    check_topics(access_of(bootstrap, options), topics)
    demand_psycopg()
    from tailrace.pipeline.postgres.queue.job import queue_dsn

    demand_database(queue_dsn(dsn))


def check_topics(access: Access, topics: Sequence[str]) -> dict[str, int]:
    """That a broker answers, and that all topics exist; how many partitions they have."""
    with Cluster(access.bootstrap, access.security, timeout_s=ANSWER_TIMEOUT_S) as cluster:
        try:
            found = cluster.partition_counts(topics)
        except NoBrokerAvailable as silent:
            raise NoBrokerAvailable(f"{silent}; {HOW_TO_REACH_BROKERS}") from None
        missing = [name for name in topics if name not in found]
        if missing:
            raise NoSuchTopic(_said_of(missing, cluster.names(), access.bootstrap))
    return found


def _said_of(missing: Sequence[str], there: Sequence[str], bootstrap: str) -> str:
    near = [name for one in missing for name in get_close_matches(one, there, n=1)]
    hint = f"did you mean {', '.join(near)}? " if near else ""
    what = f"is no topic {missing[0]}" if len(missing) == 1 else f"are no topics {', '.join(missing)}"
    return f"there {what} at {bootstrap}; {hint}`tailrace topic list` shows what is there"


def _demand_expression(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise Misused(f"--pattern {pattern}: it is no regular expression: {error}.") from None


def _demand_report(report: Path) -> None:
    from tailrace.pipeline.analysis.plotting import demand_plotly

    demand_plotly()
    if report.is_dir():
        raise PipelineFailed(f"--report {report} is a folder: name a file in it, such as {report / 'report.html'}")
    folder = report.absolute().parent
    if not folder.is_dir():
        raise PipelineFailed(f"--report {report}: there is no folder {folder}; make it, or name another file")
    if not os.access(report if report.exists() else folder, os.W_OK):
        raise PipelineFailed(f"--report {report} cannot be written: no permission; name another file")
