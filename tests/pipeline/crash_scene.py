"""A topic that is copied, archived and replayed by processes that die on the way (see `crash_places`).

A module whose tests do so imports the fixture `scene`.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline import archive, audit, history, replay
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashScene:
    spark: "SparkSession"
    bootstrap: str
    cluster: Cluster
    topic: str
    folder: Path  # of the archive and of the checkpoint
    crash_file: Path  # where a process of the Spark session reads at which place it is to die

    def dying_at(self, places: list[str], run: Callable[[], object]) -> None:
        """Run it, again and again, each time dying at the next place; and then to its end."""
        for place in places:
            self.crash_file.write_text(place)
            with contextlib.suppress(Exception):
                run()
            assert not self.crash_file.exists(), f"nothing came by {place!r}"
        run()

    def copy(self, into: str, at_once: int = 1000) -> None:
        """Copy all that the topic has now, exactly once, `at_once` records in a batch."""
        reader = self.spark.readStream.format("tailrace").option("kafka.bootstrap.servers", self.bootstrap)
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        frame = reader.option("maxOffsetsPerTrigger", at_once).load().select("key", "value")
        writer = frame.writeStream.format("tailrace").option("kafka.bootstrap.servers", self.bootstrap)
        writer = writer.option("topic", into).option("exactlyOnce", "true").option("sinkId", self.topic)
        checkpoint = str(self.folder / "checkpoint")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination(200)

    @property
    def archived(self) -> Path:
        return self.folder / "h"

    def archive(self) -> None:
        archive(self.spark, self.bootstrap, self.archived, topics=[self.topic], available_now=True)

    def replay(self, into: str) -> None:
        replay(self.spark, self.archived, self.bootstrap, topic=self.topic, into=into)

    def assert_archived(self, records: int) -> None:
        """The archive has that many records, and an audit finds nothing wrong."""
        assert history(self.spark, self.archived).count() == records
        assert audit(self.spark, self.archived, bootstrap=self.bootstrap).findings == ()


@pytest.fixture
def scene(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, crash_file: Path
) -> CrashScene:
    return CrashScene(
        spark=spark,
        bootstrap=broker.bootstrap,
        cluster=cluster,
        topic=topic,
        folder=tmp_path,
        crash_file=crash_file,
    )
