"""A Spark session for a command, how far it is, and its failures as sentences."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

LOOK_EVERY_S: Final = 0.3

Master = Annotated[str, typer.Option("--master", envvar="TAILRACE_SPARK_MASTER", help="Where Spark runs.")]


@contextmanager
def running(master: str) -> "Iterator[SparkSession]":
    try:
        from pyspark import SparkContext

        from tailrace.pipeline.jvm.session import session
    except ImportError as error:
        raise Failed(f'this command needs Spark: pip install "tailrace[spark]" ({error}).') from None
    is_ours = SparkContext._active_spark_context is None
    spark = session("tailrace pipeline", master=master)
    try:
        yield spark
    finally:
        if is_ours:  # one that was there before us is somebody else's
            spark.stop()


@contextmanager
def watching(spark: "SparkSession", doing: str) -> Iterator[None]:
    """A bar of Spark's tasks, of whatever it is at, while this lasts."""
    with progress() as bar:
        task = bar.add_task(doing, total=None)
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(spark, bar, task, over), daemon=True)
        if not bar.disable:
            watch.start()
        try:
            yield
        finally:
            over.set()
            if not bar.disable:
                watch.join()


def _watch(spark: "SparkSession", bar: "Progress", task: "TaskID", over: threading.Event) -> None:
    while not over.wait(LOOK_EVERY_S):
        done, total = tasks_done(spark)
        if total:
            bar.update(task, completed=done, total=total)


def tasks_done(spark: "SparkSession") -> tuple[int, int]:
    """Of the stages that run now: how many of their tasks are done, and how many there are."""
    tracker = spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    stages = [info for info in found if info is not None]
    return sum(info.numCompletedTasks for info in stages), sum(info.numTasks for info in stages)


@contextmanager
def failing() -> Iterator[None]:
    """Turn what Spark throws into a sentence."""
    from tailrace.pipeline.failure import PipelineFailed
    from tailrace.pipeline.jvm.reasons import reason

    try:
        yield
    except (Failed, Misused, typer.Exit):
        raise
    except PipelineFailed as failed:
        raise Failed(f"{failed}.") from None
    except Exception as error:
        raise Failed(f"{reason(error)}.") from None
