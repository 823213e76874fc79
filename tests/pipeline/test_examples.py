"""The examples on Spark, as people run them; the quickest of them in the session that the tests share."""

import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.testing import Broker
from tests.pipeline.programs import SPARK_EXTRAS, fetched, root, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = root / "examples"


@pytest.mark.spark
def test_foreach_batch(spark: "SparkSession", tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLES / "spark_foreach_batch.py"))
    with Broker(fsync="never") as broker:
        example["send"](broker.bootstrap)
        assert example["add_up"](spark, broker.bootstrap, tmp_path) == {"ada": 31, "bob": 12}
        assert example["add_up"](spark, broker.bootstrap, tmp_path) == {"ada": 31, "bob": 12}


@pytest.mark.long
def test_orders() -> None:
    printed = run([sys.executable, "spark_orders.py"], os.environ, EXAMPLES)
    assert '"customer":"bob","total":12' in printed
    assert "set aside: 'no order', quarantine-reason: no JSON of customer string, total int" in printed
    assert "audit: complete" in printed
    assert "replayed: 3 of ada's orders" in printed


@pytest.mark.long
def test_state() -> None:
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(fetched(*SPARK_EXTRAS))])
    assert "ada has spent 110" in run([sys.executable, "spark_state.py"], {**os.environ, "PYTHONPATH": path}, EXAMPLES)
