"""A streaming aggregation over event time, with late and unordered records, over restarts: the same as by hand."""

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.topics import FIRST_TIME, make_topic, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW_MS = 60_000
PATIENCE_MS = 120_000  # how late a record may be


def batch_of(dice: random.Random, start_ms: int) -> list[NewRecord]:
    """Records of about four minutes in any order; one of them is far too late."""
    times = [start_ms + dice.randrange(4 * WINDOW_MS) for _ in range(40)]
    return [NewRecord(b"1", b"%d" % dice.randrange(3), timestamp=time) for time in times]


def by_hand(batches: list[list[NewRecord]]) -> Counter[tuple[int, bytes]]:
    """Count by window and key; too late is what belongs to a window that ended before the watermark of past batches."""
    counts: Counter[tuple[int, bytes]] = Counter()
    watermark = 0
    for batch in batches:
        for one in batch:
            window = one.timestamp // WINDOW_MS * WINDOW_MS
            if window + WINDOW_MS > watermark:
                counts[window, one.key or b""] += 1
        watermark = max(watermark, max(one.timestamp for one in batch) - PATIENCE_MS)
    return Counter({place: count for place, count in counts.items() if place[0] + WINDOW_MS <= watermark})


@pytest.mark.spark
def test_windows_with_late_records_over_restarts(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    make_topic(cluster, topic)
    base = FIRST_TIME // WINDOW_MS * WINDOW_MS
    dice = random.Random(7)
    batches = [batch_of(dice, base + number * 5 * WINDOW_MS) for number in range(3)]
    batches[2].append(NewRecord(b"1", b"0", timestamp=base))  # hopelessly late
    for batch in batches:
        write(cluster, topic, batch)
        reader = spark.readStream.format("tailrace").option("kafka.bootstrap.servers", broker.bootstrap)
        frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
        counted = (
            frame.withWatermark("timestamp", f"{PATIENCE_MS} milliseconds")
            .groupBy(f.window("timestamp", f"{WINDOW_MS} milliseconds"), "key")
            .count()
        )
        writer = counted.selectExpr("unix_millis(window.start) as start", "key", "count").writeStream
        writer = writer.format("parquet").option("path", str(tmp_path / "out")).outputMode("append")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination(60)
    found = Counter[tuple[int, bytes]]()
    for row in spark.read.parquet(str(tmp_path / "out")).collect():
        found[row.start, bytes(row.key)] += row["count"]
    assert found == by_hand(batches)
    assert sum(found.values()) > 60
