"""The audit by seeds: whatever is harmed is found and named, and nothing is found where nothing was."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipeline import audit
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.damage import harms
from tests.pipeline.random_histories import healthy_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def seeds(few: int, many: int) -> list[Any]:
    """The first always, the others where there is time."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(few, many))]


@pytest.mark.parametrize("seed", seeds(len(harms), 60))
def test_damage_is_found_and_named(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    healthy_history(cluster, topic, tmp_path / "h", dice)
    harm = harms[seed % len(harms)](tmp_path / "h", dice)
    found = audit(spark, tmp_path / "h")
    assert not found.is_complete
    assert harm.is_named_by(found.findings), [str(finding) for finding in found.findings]


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_a_healthy_history_is_no_alarm(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, seed: int
) -> None:
    healthy_history(cluster, topic, tmp_path / "h", random.Random(seed))
    found = audit(spark, tmp_path / "h", bootstrap=broker.bootstrap)
    assert found.findings == ()
    assert found.records > 0
