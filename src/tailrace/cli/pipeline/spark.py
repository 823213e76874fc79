"""A Spark session for a command, how far it is, and its failures as sentences."""

import logging
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

LOG_LEVEL_VERBOSE: Final = "INFO"
QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
SPARKS_OWN_BAR: Final = "spark.ui.showConsoleProgress"
DRIVER_OPTIONS: Final = "spark.driver.extraJavaOptions"

Master = Annotated[str, typer.Option("--master", envvar="TAILRACE_SPARK_MASTER", help="Where Spark runs.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show Spark's own log on standard error.")]


@contextmanager
def running(master: str, *, verbose: bool) -> "Iterator[SparkSession]":
    """A session for as long as this lasts; `pipeline_checks.check_spark` says first whether there can be one."""
    from pyspark import SparkContext

    from tailrace.pipeline.jvm.session import session

    is_ours = SparkContext._active_spark_context is None
    spark = session("tailrace pipeline", master=master, settings=_log_settings(master, verbose=verbose))
    if not verbose:
        _keep_quiet()
    try:
        yield spark
    finally:
        if is_ours:  # one that was there before us is somebody else's
            spark.stop()


def _log_settings(master: str, *, verbose: bool) -> dict[str, str]:
    """Settings for errors alone, or for all of Spark's log. Sessions of a local master need none to be quiet."""
    from tailrace.pipeline.jvm.spark_log import LOG_LEVEL, log_options

    level = {LOG_LEVEL: LOG_LEVEL_VERBOSE} if verbose else {}
    if master.startswith("local"):
        return level
    return {**level, DRIVER_OPTIONS: " ".join(log_options(level)), SPARKS_OWN_BAR: "false"}


def _keep_quiet() -> None:
    """Spark's Python half logs each failed query as JSON, with a page of Java in it; the exception says the same."""
    from pyspark.logger import PySparkLogger

    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


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
    """Turn what the pipeline or Spark raises into a sentence."""
    from tailrace.pipeline.failure import PipelineFailed
    from tailrace.pipeline.jvm.error_reasons import is_spark_error, reason

    try:
        yield
    except (Failed, Misused, typer.Exit):
        raise
    except PipelineFailed as failed:
        raise Failed(f"{failed}.") from None
    except Exception as error:
        hint = "\nWith --verbose, Spark's own log says more." if is_spark_error(error) else ""
        raise Failed(f"{reason(error)}.{hint}") from None
