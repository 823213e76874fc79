"""A member that uses confluent-kafka."""

import sys
from typing import Any

from confluent_kafka import Consumer

from tests.interop.members import Assignment, say, set_at_sigterm


def main(bootstrap: str, topic: str, group: str, strategy: str, instance: str) -> None:
    over = set_at_sigterm()
    static: dict[str, Any] = {"group.instance.id": instance} if instance else {}
    classic = {"partition.assignment.strategy": strategy, "session.timeout.ms": 6000, "heartbeat.interval.ms": 300}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.commit.interval.ms": 100,
            "auto.offset.reset": "earliest",
            **static,
            **({"group.protocol": "consumer"} if strategy == "consumer" else classic),
        }
    )
    consumer.subscribe([topic])
    assignment = Assignment()
    while not over.is_set():
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            say("got", message.partition(), message.offset())
        assignment.is_now(one.partition for one in consumer.assignment())
    consumer.close()


main(*sys.argv[1:])
