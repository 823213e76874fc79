"""Orders on Spark, from topic to topic to history: run it, and read it from top to bottom like a notebook.

    python examples/spark_orders.py

It starts a broker of its own, and needs `pip install "tailrace[client,spark,report]"`. No Java has to be installed.
"""

import json
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tailrace.pipeline import analyze, archive, audit, history, parse_json, replay, session
from tailrace.testing import Broker

NINE = 1_794_819_600_000  # nine o'clock, in milliseconds
ORDERS = [  # minute, customer, total; the fourth comes late, the fifth is no order at all
    (0, "ada", 20),
    (3, "bob", 5),
    (7, "ada", 10),
    (1, "bob", 7),
    (8, None, None),
    (12, "ada", 1),
]


def send(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for minute, customer, total in ORDERS:
        value = json.dumps({"customer": customer, "total": total}) if customer else "no order"
        producer.produce("orders", value, key=customer, timestamp=NINE + minute * 60_000)
    producer.flush()


def put(frame: DataFrame, at: dict[str, str], topic: str, folder: Path) -> None:
    """Write what is there now of a stream into a topic, each row once."""
    Producer({"bootstrap.servers": at["kafka.bootstrap.servers"]}).list_topics(topic)  # made when first asked for
    sink = frame.writeStream.format("tailrace").options(**at, topic=topic, exactlyOnce="true", sinkId=topic)
    sink = sink.option("checkpointLocation", str(folder / "checkpoints" / topic))
    sink.trigger(availableNow=True).start().awaitTermination()


def set_aside(spark: SparkSession, at: dict[str, str], bad: DataFrame, folder: Path) -> None:
    """What is no order goes to a topic where somebody looks, and says why it is there."""
    put(bad, at, "quarantine", folder)
    reader = spark.read.format("tailrace").options(**at, subscribe="quarantine", includeHeaders="true")
    for row in reader.load().collect():
        print(f"set aside: {row.value.decode()!r}, {row.headers[0].key}: {row.headers[0].value.decode()}")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tailrace-orders-"))
    with Broker() as broker:
        send(broker.bootstrap)
        spark = session("orders", master="local[2]")
        at = {"kafka.bootstrap.servers": broker.bootstrap}

        # A stream of orders, with event time and late ones: what each customer spent in windows of five minutes.
        stream = (
            spark.readStream.format("tailrace").options(**at, subscribe="orders", startingOffsets="earliest").load()
        )
        read = parse_json(stream, "customer string, total int")
        totals = (
            read.rows.withWatermark("timestamp", "5 minutes")
            .groupBy(f.window("timestamp", "5 minutes"), f.col("data.customer").alias("customer"))
            .agg(f.sum("data.total").alias("total"))
        )

        # Back into a topic, each window once, when no more late orders are waited for.
        written = totals.selectExpr("customer as key", "to_json(struct(window.start, customer, total)) as value")
        put(written, at, "totals", folder)
        for row in spark.read.format("tailrace").options(**at, subscribe="totals").load().orderBy("offset").collect():
            print("total:", row.value.decode())

        set_aside(spark, at, read.bad, folder)

        # A history of it all, and the proof that it is complete.
        topics = ["orders", "totals", "quarantine"]
        archive(spark, broker.bootstrap, folder / "history", topics=topics, available_now=True)
        found = audit(spark, folder / "history", bootstrap=broker.bootstrap)
        print("audit:", "complete" if found.is_complete else found.findings, f"({found.records} records)")
        history(spark, folder / "history").groupBy("topic", "date").count().show()
        analyze(spark, folder / "history", report=folder / "report.html")
        print("report:", folder / "report.html")

        # And back: ada's orders, into a topic of their own.
        Producer({"bootstrap.servers": broker.bootstrap}).list_topics("ada")
        count = replay(spark, folder / "history", broker.bootstrap, topic="orders", into="ada", key="ada")
        print(f"replayed: {count} of ada's orders")
        spark.stop()


if __name__ == "__main__":
    main()
