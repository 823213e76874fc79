"""The analysis as a job: ask the history, and write the page."""

from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.pipeline.analysis.lag import lag
from tailrace.pipeline.analysis.page import page
from tailrace.pipeline.analysis.tables import Answer, answers, step_of
from tailrace.pipeline.histories.reading import history as history_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def analyze(spark: "SparkSession", history: str | Path, *, report: str | Path = "") -> list[Answer]:
    """What a history says; written to `report` as a page, when that is given."""
    frame = history_of(spark, history)
    step_s = step_of(frame)
    found = [*answers(frame.where("not startswith(topic, '__')"), step_s), lag(frame, step_s)]
    if report:
        Path(report).write_text(page(str(history), found), encoding="utf-8")
    return found
