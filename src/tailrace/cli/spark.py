"""A Spark session for a command, and its failures as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tailrace.cli.failure import Failed, Misused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
