"""A separate process that starts a session, runs one query, and prints how many seconds each took.

python -m benchmarks.spark_start BOOTSTRAP TOPIC RECORDS
"""

import json
import sys
import time


def main(bootstrap: str, topic: str, records: int) -> None:
    began = time.perf_counter()
    from tailrace.pipeline import session

    spark = session("benchmarks", master="local[2]", keep_classes=False)
    started = time.perf_counter()
    reader = spark.read.format("tailrace").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    found = reader.load().count()
    answered = time.perf_counter()
    assert found == records, f"{found} records were read; {records} were written"
    print(json.dumps([started - began, answered - started]))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
