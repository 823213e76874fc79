"""The analysis job: query the history and write the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.analysis.archive_times import archive_times
from tailrace.pipeline.analysis.counting import (
    partition_shares,
    partitions,
    size_lines,
    step_of_report,
    topic_lines,
    totals,
)
from tailrace.pipeline.analysis.lag import lag, lag_lines
from tailrace.pipeline.analysis.plotting import demand_plotly
from tailrace.pipeline.analysis.report import PartitionShare, Report
from tailrace.pipeline.analysis.tables import ResultTable, result_tables, step_of
from tailrace.pipeline.histories.reading import files_frame, snapshot_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOT_THE_BROKERS_OWN: Final = "not startswith(topic, '__')"


def analyze(spark: "SparkSession", history: str | Path, *, report: str | Path = "") -> list[ResultTable]:
    """Return the tables for a history. If `report` is given, also write a page with plots to that file."""
    if report:
        demand_plotly()
    folder = Path(history).absolute()
    snapshot = snapshot_of(folder)
    frame = files_frame(spark, folder, snapshot)
    step_s = step_of(frame)
    ranges = [one for one in snapshot.ranges if not one.topic.startswith("__")]
    shares = partition_shares(ranges)
    topics, throughput, sizes, *others = result_tables(frame.where(NOT_THE_BROKERS_OWN), step_s)
    found = [topics, throughput, sizes, partitions(shares), *others, lag(frame, step_s)]
    if report:
        from tailrace.pipeline.analysis.page import page

        text = page(report_of(frame, folder, str(history), shares, found))
        Path(report).write_text(text, encoding="utf-8", errors="replace")  # a folder name may not be valid UTF-8
    return found


def report_of(
    frame: "DataFrame", folder: Path, name: str, shares: Sequence[PartitionShare], tables: Sequence[ResultTable]
) -> Report:
    """Collect the data for the report's plots and tables."""
    own, every = frame.where(NOT_THE_BROKERS_OWN), totals(frame)
    of = tuple(one for one in every if not one.topic.startswith("__"))
    step_s = step_of_report(of)
    lags, lag_lines_in_all = lag_lines(frame, step_of_report(every))  # commits may be outside the records' time range
    return Report(
        history=name,
        step_s=step_s,
        totals=of,
        lines=topic_lines(own, step_s, of, archive_times(folder)),
        sizes=size_lines(own, of),
        partitions=tuple(shares),
        lags=lags,
        lag_lines_in_all=lag_lines_in_all,
        tables=tuple(tables),
    )
