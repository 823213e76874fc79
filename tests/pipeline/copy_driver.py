"""A driver of its own: copies a topic into another, exactly once, up to what is there now.

python -m tests.pipeline.copy_driver MASTER BOOTSTRAP TOPIC INTO CHECKPOINT
"""

import sys

from tailrace.pipeline import session


def copy(master: str, bootstrap: str, topic: str, into: str, checkpoint: str) -> None:
    spark = session("copying", master=master, brief=True, keep_classes=False)
    at = {"kafka.bootstrap.servers": bootstrap}
    reader = spark.readStream.format("tailrace").options(**at, subscribe=topic, startingOffsets="earliest")
    frame = reader.option("maxOffsetsPerTrigger", "10").load().select("key", "value")
    writer = frame.writeStream.format("tailrace").options(**at, topic=into, exactlyOnce="true", sinkId=into)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    copy(*sys.argv[1:])
