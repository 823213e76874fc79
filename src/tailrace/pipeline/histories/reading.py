"""`history`: the live files of a history as a native Spark DataFrame.

Spark reads Parquet itself, so a query reads only the columns, row groups and days that it needs, and nothing crosses to
Python. Deleted and uncommitted files are not seen, because the files are listed by the log.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.pipeline.failure import NotOurHistory
from tailrace.pipeline.histories.delta_log import Snapshot, read_log, read_undamaged_commits
from tailrace.pipeline.histories.spark_columns import SPARK_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def history(spark: "SparkSession", path: str | Path) -> "DataFrame":
    """All records of a history, with the columns of the source and the producer columns."""
    folder = Path(path).absolute()
    return files_frame(spark, folder, snapshot_of(folder))


def snapshot_of(folder: Path) -> Snapshot:
    """The history in this folder. `NotOurHistory` when there is none, `HistoryDamaged` when its log is damaged."""
    return _demand_history(folder, read_log(folder))


def undamaged_snapshot_of(folder: Path) -> Snapshot:
    """The history in this folder, without its damaged commits. `NotOurHistory` when there is none."""
    return _demand_history(folder, read_undamaged_commits(folder))


def _demand_history(folder: Path, snapshot: Snapshot) -> Snapshot:
    if snapshot.version < 0:
        raise NotOurHistory(f"there is no history in {folder}; `tailrace pipeline archive` makes one")
    return snapshot


def files_frame(spark: "SparkSession", folder: Path, snapshot: Snapshot) -> "DataFrame":
    if not snapshot.live:
        return spark.createDataFrame([], SPARK_DDL)
    paths = [str(folder / path) for path in sorted(snapshot.live)]
    return spark.read.schema(SPARK_DDL).option("basePath", str(folder)).parquet(*paths)
