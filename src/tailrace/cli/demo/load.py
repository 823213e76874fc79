"""The load of `tailrace demo`: send messages while the leader is killed, and read all of them back."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.kafka_client import consumer, producer, sentence
from tailrace.cli.failure import Failed
from tailrace.cli.messages.reading import Reading
from tailrace.model.frozen import frozen

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

MESSAGES: Final = 2_000
APART_S: Final = 0.0005
ANSWER_MAX_S: Final = 30.0


@frozen
class Sent:
    """The messages that were confirmed, the offset of the first, and the longest pause between two confirmations."""

    confirmed: list[bytes]
    first_offset: int
    longest_wait_s: float


class Sending:
    """Sends numbered messages to partition 0, and notes when each is confirmed."""

    def __init__(self, access: Access, topic: str) -> None:
        self._client = producer(access, {"acks": "all", "enable.idempotence": True, "linger.ms": 1})
        self._topic = topic
        self._confirmed: list[bytes] = []
        self._offsets: list[int] = []
        self._failed: list[KafkaError] = []
        self._last_at = 0.0
        self._longest_wait_s = 0.0

    def send(self, in_the_midst: Callable[[], None]) -> Sent:
        self._send_one(0)
        self._client.flush(ANSWER_MAX_S)  # connects to the leader, which is not to be measured
        self._longest_wait_s = 0.0
        for number in range(1, MESSAGES):
            if number == MESSAGES // 2:
                in_the_midst()
            self._send_one(number)
            self._client.poll(APART_S)
        unconfirmed = self._client.flush(ANSWER_MAX_S)
        if self._failed or unconfirmed:
            why = sentence(self._failed[0]) if self._failed else f"{unconfirmed} were never confirmed"
            raise Failed(f"the messages did not arrive: {why}.")
        return Sent(confirmed=self._confirmed, first_offset=min(self._offsets), longest_wait_s=self._longest_wait_s)

    def _send_one(self, number: int) -> None:
        value = f"order {number + 1}".encode()
        self._client.produce(self._topic, key=b"ann", value=value, partition=0, on_delivery=self._arrived)

    def _arrived(self, error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            self._failed.append(error)
            return
        now = time.monotonic()
        self._longest_wait_s = max(self._longest_wait_s, now - self._last_at)
        self._last_at = now
        self._confirmed.append(bytes(message.value() or b""))
        self._offsets.append(message.offset() or 0)


def read_back(access: Access, topic: str, first_offset: int) -> list[bytes]:
    """The values in partition 0 from this offset to the end of the log."""
    client = consumer(access, {"enable.partition.eof": True})
    from confluent_kafka import TopicPartition

    try:
        client.assign([TopicPartition(topic, 0, first_offset)])
        reading = Reading(client, [0], most=None, timeout_s=ANSWER_MAX_S, to_end=True)
        return [bytes(message.value() or b"") for some in reading.lists() for message in some]
    finally:
        client.close()
