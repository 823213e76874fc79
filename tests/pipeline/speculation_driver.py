"""A driver of its own: writes rows into a topic, exactly once, while Spark runs a slow task twice at a time.

The task of the first rows waits until its second attempt has begun, which only speculation starts; then both write.

python -m tests.pipeline.speculation_driver MASTER BOOTSTRAP INTO FOLDER
"""

import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import functions

from tailrace.pipeline import session

TASKS = 4
ROWS_OF_EACH = 10
SPECULATED_WITHIN_S = 120.0
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "100ms",
}


def speculate(master: str, bootstrap: str, into: str, folder: str) -> None:
    def slow(number: int) -> str:
        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == 0:
            meet(Path(folder), task.attemptNumber())
        return str(number)

    spark = session("speculating", master=master, settings=SPECULATION)
    value = functions.udf(slow, "string")("id").alias("value")
    rows = spark.range(0, TASKS * ROWS_OF_EACH, numPartitions=TASKS).select(value)
    at = {"kafka.bootstrap.servers": bootstrap, "topic": into, "exactlyOnce": "true", "sinkId": into}
    rows.write.format("tailrace").options(**at).mode("append").save()
    spark.stop()


def meet(folder: Path, attempt: int) -> None:
    """Note that an attempt is here, and wait for the other."""
    (folder / f"attempt-{attempt}").touch()
    deadline = time.monotonic() + SPECULATED_WITHIN_S
    while not (folder / "attempt-1").exists():
        assert time.monotonic() < deadline, "Spark did not speculate"
        time.sleep(0.05)


if __name__ == "__main__":
    speculate(*sys.argv[1:])
