"""Start-up times of Spark: of a session, from the second start on a machine on, and of its first query.

Each start is a new process. The class archive that the first session on a machine creates in the background is created
before, in a cache of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.outcomes import Outcome, Threshold
from benchmarks.spark_loads import Load
from benchmarks.spark_topics import fill
from tailrace.pipeline.kafka.cluster import Cluster

STARTS: Final = 3
TIMEOUT_S: Final = 600
FEW: Final = Load(topic="of-a-few", record_bytes=100, per_batch=100, batches=4)


def spark_starts(bootstrap: str, cluster: Cluster, folder: Path) -> Iterator[Outcome]:
    fill(cluster, FEW)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    _run(environment, "tailrace.pipeline.jvm.class_archive")
    seconds = [
        json.loads(_run(environment, "benchmarks.spark_start", bootstrap, FEW.topic, str(FEW.records)).splitlines()[-1])
        for _ in range(STARTS)
    ]
    sessions, answers = zip(*seconds, strict=True)
    yield _outcome("Spark session, second start", sessions, at_most=3.5)
    yield _outcome("Spark session, first query", answers, at_most=4.0)


def _outcome(name: str, rounds: tuple[float, ...], *, at_most: float) -> Outcome:
    threshold = Threshold(of="value", at_most=at_most)
    return Outcome(name=name, fsync="never", acks="", unit="s", rounds=rounds, threshold=threshold)


def _run(environment: dict[str, str], module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout
