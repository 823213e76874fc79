"""Orders into a database that Spark has no sink for, each once: `foreachBatch` on a stream of ours.

    python examples/spark_foreach_batch.py

It starts a broker of its own, and needs `pip install "tailrace[client,spark]"`.
"""

import json
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from tailrace.pipeline import parse_json, session
from tailrace.testing import Broker

ORDERS = [("ada", 20), ("bob", 5), ("ada", 10), ("bob", 7), ("ada", 1)]


def send(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for customer, total in ORDERS:
        producer.produce("orders", json.dumps({"customer": customer, "total": total}), key=customer)
    producer.flush()


def into(database: Path) -> Callable[[DataFrame, int], None]:
    """Adds up what each customer spent. Spark runs a batch again after a crash; the table of batches knows it."""

    def write(frame: DataFrame, batch: int) -> None:
        rows = frame.groupBy("data.customer").sum("data.total").collect()
        with sqlite3.connect(database) as connection:  # one transaction: the batch and its number, or neither
            connection.execute("create table if not exists batches (number int primary key)")
            connection.execute("create table if not exists spent (customer text primary key, total int)")
            if connection.execute("select 1 from batches where number = ?", (batch,)).fetchone():
                return
            connection.execute("insert into batches values (?)", (batch,))
            connection.executemany(
                "insert into spent values (?, ?) on conflict (customer) do update set total = total + excluded.total",
                [tuple(row) for row in rows],
            )

    return write


def add_up(spark: SparkSession, bootstrap: str, folder: Path) -> dict[str, int]:
    """Read all orders that are there, two in a batch; what each customer spent."""
    at = {"kafka.bootstrap.servers": bootstrap}
    reader = spark.readStream.format("tailrace").options(**at, subscribe="orders", startingOffsets="earliest")
    rows = parse_json(reader.option("maxOffsetsPerTrigger", 2).load(), "customer string, total int").rows
    writer = rows.writeStream.foreachBatch(into(folder / "spent.db"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    with sqlite3.connect(folder / "spent.db") as connection:
        return dict(connection.execute("select customer, total from spent order by customer"))


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tailrace-foreach-batch-"))
    with Broker() as broker:
        send(broker.bootstrap)
        spark = session("foreach batch", master="local[2]")
        print(add_up(spark, broker.bootstrap, folder))
        spark.stop()


if __name__ == "__main__":
    main()
