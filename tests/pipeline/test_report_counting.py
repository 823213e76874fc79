"""What Spark counts for a report: true times, a bounded number of points and lines, delays that are what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipeline import compact
from tailrace.pipeline.analysis import report as bounds
from tailrace.pipeline.analysis.archive_times import (
    CommittedRange,
    archive_times,
    block_length,
    blocks,
    with_archive_times,
)
from tailrace.pipeline.analysis.counting import size_lines, step_of_report, topic_lines, totals
from tailrace.pipeline.analysis.lag import COMMITTED_TOPIC, lag_lines
from tailrace.pipeline.histories import committing
from tailrace.pipeline.histories.reading import history
from tailrace.pipeline.histories.spark_columns import SPARK_DDL
from tailrace.pipeline.kafka.cluster import Cluster
from tests.pipeline.test_upkeep import grown
from tests.pipeline.topics import FIRST_TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def frame_of(spark: "SparkSession", rows: Sequence[dict[str, Any]]) -> "DataFrame":
    """Records as a history has them; what a row leaves out is of no account."""
    usual: dict[str, Any] = {
        "key": None,
        "value": b"",
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "type": 0,
        "headers": [],
    }
    filled = [{**usual, "offset": place, **row} for place, row in enumerate(rows)]
    moments = [datetime.fromtimestamp(row["ms"] / 1000, UTC) for row in filled]
    told = [
        (row["key"], row["value"], row["partition"], row["offset"], moment, row["type"], row["headers"], -1, -1, -1,
         row["topic"], None)
        for row, moment in zip(filled, moments, strict=True)
    ]  # fmt: skip
    return spark.createDataFrame(told, SPARK_DDL)


def test_times_are_true_and_delays_are_of_those_who_say(spark: "SparkSession") -> None:
    sent = [(b"sent-at", b"%d" % (FIRST_TIME - late)) for late in (10, 20, 30)]
    frame = frame_of(
        spark,
        [
            *({"ms": FIRST_TIME, "value": b"x" * 10, "headers": [one]} for one in sent),
            {"ms": FIRST_TIME + 300_500, "value": b"x" * 5, "type": 1},
            {"ms": -1, "value": b"x"},
        ],
    )
    (one,) = of = totals(frame)
    assert (one.messages, one.bytes, one.untimed, one.first_ms) == (5, 36, 1, FIRST_TIME)
    assert one.clock == "producers, brokers later or before"
    assert step_of_report(of) == 1
    (line,) = topic_lines(
        frame, 1, of, [CommittedRange(topic="orders", partition=0, start=0, end=2, committed_ms=FIRST_TIME + 40)]
    )
    assert [(step.at_ms, step.messages, step.bytes) for step in line.steps] == [
        (FIRST_TIME, 3, 30),
        (FIRST_TIME + 300_000, 1, 5),
    ]
    assert [step.latency for step in line.steps] == [(20, 30, 30), None]
    assert [step.archive_delay for step in line.steps] == [(40, 40, 40), None]  # no commit has the others


def test_lines_and_points_are_bounded(spark: "SparkSession") -> None:
    """Fifteen topics over a year, a record a day in each of the first."""
    day_ms = 24 * 3_600_000
    rows = [
        {"topic": f"topic-{number:02d}", "ms": FIRST_TIME + day * day_ms + number, "value": b"x" * number}
        for number in range(15)
        for day in range(3 if number < 12 else 1)
    ]
    rows.append({"topic": "topic-00", "ms": FIRST_TIME + 2000 * day_ms})
    frame = frame_of(spark, rows)
    of = totals(frame)
    step_s = step_of_report(of)
    assert 2000 * 86_400 / step_s <= bounds.TIME_POINTS_MAX
    lines = topic_lines(frame, step_s, of, [])
    names = [line.name for line in lines]
    assert (len(lines), names[0], names[-1]) == (bounds.TOPICS_DRAWN_MAX + 1, "topic-00", "3 other topics")
    assert sum(step.messages for step in lines[-1].steps) == 3
    assert [line.name for line in size_lines(frame, of)] == names
    assert dict(size_lines(frame, of)[-1].counts) == {4: 3}  # 12, 13 and 14 have four bits


def test_sizes_are_counted_by_their_bits(spark: "SparkSession") -> None:
    sizes = [0, 1, 2, 3, 4, 63, 64, 127, 128]
    frame = frame_of(spark, [{"ms": FIRST_TIME, "value": b"x" * size} for size in sizes] + [{"ms": 1, "value": None}])
    (line,) = size_lines(frame, totals(frame))
    assert line.counts == ((0, 2), (1, 1), (2, 2), (3, 1), (6, 1), (7, 2), (8, 1))


def test_the_furthest_behind_are_shown(spark: "SparkSession") -> None:
    def commit(group: str, offset: int) -> dict[str, Any]:
        key = b"\x00\x01" + len(group).to_bytes(2) + group.encode() + b"\x00\x06orders" + b"\0\0\0\0"
        value = b"\x00\x03" + offset.to_bytes(8)
        return {"topic": COMMITTED_TOPIC, "key": key, "value": value, "ms": FIRST_TIME + 1500}

    rows = [{"ms": FIRST_TIME + 1000 * number} for number in range(31)]
    rows += [commit(f"group-{number:02d}", number) for number in range(20)]
    lines, count = lag_lines(frame_of(spark, rows), 1)
    assert (len(lines), count) == (bounds.LAG_LINES_MAX, 20)
    assert [line.group for line in lines[:2]] == ["group-00", "group-01"]
    assert lines[0].points[0] == (FIRST_TIME + 2000, 2)  # at the end of the step in which it was committed
    assert lines[1].points[-1] == (FIRST_TIME + 31_000, 30)


@dataclass(slots=True)
class Clock:
    """For commits: quarter of an hour goes by between two looks at it."""

    now_s: float = FIRST_TIME / 1000

    def time(self) -> float:
        self.now_s += 900
        return self.now_s


def test_records_know_when_they_were_archived_even_after_a_compaction(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "time", Clock())
    grown(cluster, topic, tmp_path / "h", 3)
    monkeypatch.undo()
    before = archived(spark, tmp_path / "h")
    assert [sorted(set(before[at : at + 10])) == [before[at]] for at in (0, 10, 20)] == [True] * 3
    assert before[0] < before[10] < before[20]
    compact(spark, tmp_path / "h")
    assert archived(spark, tmp_path / "h") == before


def archived(spark: "SparkSession", folder: Path) -> list[int]:
    """When each record was, in order of offsets."""
    found = with_archive_times(history(spark, folder), archive_times(folder)).orderBy("offset")
    return [row.committed_ms for row in found.collect()]


@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [5, 1, 100], [1000, 1, 1, 1], [3] * 50])
def test_every_offset_is_in_one_range_of_its_block(lengths: list[int]) -> None:
    added, at = [], 7
    for number, length in enumerate(lengths):
        added.append(CommittedRange(topic="t", partition=0, start=at, end=at + length, committed_ms=number))
        at += length
    length = block_length(added)
    rows = blocks(added, length)
    assert len(rows) <= 3 * len(added)
    for one in added:
        for offset in range(one.start, one.end):
            here = [row for row in rows if row[2] == offset // length and row[3] <= offset < row[4]]
            assert [row[5] for row in here] == [one.committed_ms]
