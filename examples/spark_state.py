"""State of your own for every key: who has spent more than a hundred? `transformWithState` on a stream of ours.

    python examples/spark_state.py

It starts a broker of its own, and needs `pip install "tailrace[client,spark]" "pandas<3" protobuf`: Spark asks for the
last two when it keeps state for Python.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from tailrace.pipeline import parse_json, session
from tailrace.testing import Broker

LIMIT = 100
ORDERS = [("ada", 60), ("bob", 5), ("ada", 50), ("bob", 7), ("ada", 1)]
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Spending(StatefulProcessor):
    """Remembers what a customer has spent; says so once, when it goes over the limit."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._spent = handle.getValueState("spent", "total int")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        before = self._spent.get()[0] if self._spent.exists() else 0
        after = before + sum(row.total for row in rows)
        self._spent.update((after,))
        if before <= LIMIT < after:
            yield Row(key=key[0], value=f"{key[0]} has spent {after}")

    def close(self) -> None:
        pass


def send(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for customer, total in ORDERS:
        producer.produce("orders", json.dumps({"customer": customer, "total": total}), key=customer)
    producer.flush()
    producer.list_topics("alerts")  # made when first asked for


def watch(spark: SparkSession, bootstrap: str, folder: Path) -> list[str]:
    """Read all orders that are there, two in a batch; what is in the topic of alerts then."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
    at = {"kafka.bootstrap.servers": bootstrap}
    reader = spark.readStream.format("tailrace").options(**at, subscribe="orders", startingOffsets="earliest")
    rows = parse_json(reader.option("maxOffsetsPerTrigger", 2).load(), "customer string, total int").rows
    alerts = (
        rows.select("data.customer", "data.total")
        .groupBy("customer")
        .transformWithState(Spending(), "key string, value string", outputMode="Append", timeMode="None")
    )
    sink = alerts.writeStream.format("tailrace").options(**at, topic="alerts", exactlyOnce="true", sinkId="alerts")
    sink = sink.option("checkpointLocation", str(folder / "checkpoint"))
    sink.trigger(availableNow=True).start().awaitTermination()
    found = spark.read.format("tailrace").options(**at, subscribe="alerts").load().orderBy("offset").collect()
    return [row.value.decode() for row in found]


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tailrace-state-"))
    with Broker() as broker:
        send(broker.bootstrap)
        spark = session("state", master="local[2]")
        print(*watch(spark, broker.bootstrap, folder), sep="\n")
        spark.stop()


if __name__ == "__main__":
    main()
