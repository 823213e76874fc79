"""A member of a share group that uses confluent-kafka: `BOOTSTRAP TOPIC GROUP MODE`. It takes calls as JSON lines."""

import json
import sys
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

from tests.interop.members import say

OUTCOMES = {"accept": AcknowledgeType.ACCEPT, "release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}


class Sharing:
    def __init__(self, bootstrap: str, topic: str, group: str, mode: str) -> None:
        self._topic = topic
        self._told: list[int] = []
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "share.acknowledgement.mode": mode,
                "socket.timeout.ms": 10_000,
                "retry.backoff.ms": 10,
                "topic.metadata.refresh.interval.ms": 500,
                "topic.metadata.refresh.fast.interval.ms": 10,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 200,
                "log_level": 3,
            }
        )
        self._consumer.set_acknowledgement_commit_callback(self._committed)
        self._consumer.subscribe([topic])

    def _committed(self, _: object, error: KafkaException | None) -> None:
        self._told.append(0 if error is None else error.args[0].code())

    def poll(self, asked: dict[str, Any]) -> list[tuple[object, ...]]:
        found = self._consumer.poll(asked["wait_ms"] / 1000)
        return [
            (one.partition(), one.offset(), one.delivery_count(), (one.value() or b"").decode())
            for one in found
            if one.error() is None
        ]

    def acknowledge(self, asked: dict[str, Any]) -> None:
        outcome = OUTCOMES[asked["outcome"]]
        self._consumer.acknowledge_offset(self._topic, asked["partition"], asked["offset"], outcome)

    def commit(self, _: dict[str, Any]) -> None:
        for failure in self._consumer.commit_sync(15.0).values():
            if failure is not None:
                raise failure

    def commit_later(self, _: dict[str, Any]) -> None:
        self._consumer.commit_async()

    def told(self, _: dict[str, Any]) -> list[int]:
        self._consumer.commit_async()  # what it was told comes with the next call
        return self._told

    def leave(self, _: dict[str, Any]) -> None:
        self._consumer.close()


def answer(sharing: Sharing, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": getattr(sharing, asked["call"])(asked)}
    except KafkaException as refusal:
        error = refusal.args[0]
        return {"refused": error.code(), "text": error.str()}


def main(*arguments: str) -> None:
    sharing = Sharing(*arguments)
    for line in sys.stdin:
        say(json.dumps(answer(sharing, json.loads(line))))


main(*sys.argv[1:])
