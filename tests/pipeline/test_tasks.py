"""Functions that run in Spark's tasks."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RETRY_TIMEOUT_S = 60.0
POLL_S = 0.02


def waits(began: str, over: str) -> bool:
    """A task that says that it began, and ends when it is told; whether it was told in time."""
    Path(began).touch()
    return there(Path(over))


def there(path: Path) -> bool:
    deadline = time.monotonic() + RETRY_TIMEOUT_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return path.exists()


def test_an_interrupt_ends_the_tasks(spark: "SparkSession", tmp_path: Path) -> None:
    began, over = tmp_path / "began", tmp_path / "over"

    def interrupt() -> None:
        there(began)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_tasks(spark, "tests.pipeline.test_tasks:waits", [str(began)], str(over))
    spark.createDataFrame([(1,)], "number int")  # Spark's JVM has forgotten which session is active; this reminds it
    deadline = time.monotonic() + RETRY_TIMEOUT_S / 2  # long before the task gives up by itself
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < deadline, "the job goes on"
        time.sleep(POLL_S)
    over.touch()
    assert run_tasks(spark, "tests.pipeline.test_tasks:waits", [str(began)], str(over)) == [True]
