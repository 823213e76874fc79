"""Stories from a seed: records come in, and at places that chance picks processes die; each record is there once."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline import archive, audit, history, replay
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.test_crashes import ARCHIVE_TASK, REPLAY_TASK, SOURCE_AND_SINK, copy_now, dying_at
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


class Sender:
    """Writes some more records, and knows which there are."""

    def __init__(self, cluster: Cluster, topic: str, dice: random.Random) -> None:
        self._cluster, self._topic, self._dice = cluster, topic, dice
        self._partitions = dice.randint(1, 3)
        self.sent: list[bytes] = []
        make_topic(cluster, topic, self._partitions)

    def more(self) -> None:
        for partition in range(self._partitions):
            records = numbered(self._dice.randint(1, 40), len(self.sent))
            write(self._cluster, self._topic, records, partition=partition)
            self.sent += [one.value or b"" for one in records]


@pytest.mark.parametrize("seed", range(20))
def test_a_story(
    spark: "SparkSession",
    broker: Broker,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    crash_file: Path,
    seed: int,
) -> None:
    dice = random.Random(seed)
    sender = Sender(cluster, topic, dice)
    for made in (f"{topic}-out", f"{topic}-again"):
        make_topic(cluster, made)

    def copy() -> None:
        sender.more()
        copy_now(spark, broker, topic, tmp_path / "checkpoint", at_once=dice.randint(5, 50))

    def keep() -> None:
        sender.more()
        archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)

    def bring_back() -> None:
        replay(spark, tmp_path / "h", broker.bootstrap, topic=topic, into=f"{topic}-again")

    dying_at(dice.sample(SOURCE_AND_SINK, 4), crash_file, copy)
    assert values_in_topic(cluster, f"{topic}-out") == sorted(sender.sent)
    dying_at(dice.sample(ARCHIVE_TASK, 2), crash_file, keep)
    assert history(spark, tmp_path / "h").count() == len(sender.sent)
    assert audit(spark, tmp_path / "h", bootstrap=broker.bootstrap).findings == ()
    dying_at([dice.choice(REPLAY_TASK)], crash_file, bring_back)
    assert values_in_topic(cluster, f"{topic}-again") == sorted(sender.sent)
