"""Run a Tailrace function on a list of inputs in Spark tasks, one task per input, and collect the results.

Spark's own ways to do this need pandas (`mapInArrow`) or are missing in Spark Connect (RDDs). A data source works: each
partition is an input, and its row is the function's result for this input. Inputs and results are JSON.
"""

import json
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def run_tasks(spark: "SparkSession", function: str, inputs: Sequence[Any], given: Any) -> list[Any]:
    """The result of `function`, named as `module:name`, for each of `inputs`; `given` is its second argument."""
    if not inputs:
        return []
    spark.dataSource.register(TaskSource)
    reader = spark.read.format(TaskSource.name()).option("function", function)
    reader = reader.option("given", json.dumps(given)).option("inputs", json.dumps(list(inputs)))
    try:
        return [json.loads(row.answer) for row in reader.load().collect()]
    except KeyboardInterrupt:
        spark.interruptAll()  # Spark's own handler fails: its connection is busy waiting for the result
        raise


class TaskReader(DataSourceReader):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._function, self._given = options["function"], json.loads(options["given"])
        self._inputs = json.loads(options["inputs"])

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(value) for value in self._inputs]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        module, _, name = self._function.partition(":")
        yield (json.dumps(getattr(import_module(module), name)(partition.value, self._given)),)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inputs": []}  # a task only needs its own input, which is in the partition


class TaskSource(DataSource):
    """Internal: used by `run_tasks` only."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return "tailrace_tasks"

    def schema(self) -> str:
        return "answer string"

    def reader(self, schema: "StructType") -> TaskReader:
        return TaskReader(self.options)
