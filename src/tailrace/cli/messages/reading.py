"""Reading partitions by assignment: where to start, when to stop, and which errors are fatal."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, asking, partitions_of, sentence
from tailrace.cli.failure import Failed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

POLL_S: Final = 0.1  # the longest delay of Ctrl-C, or of a single message
MESSAGES_PER_POLL_MAX: Final = 500
IDLE_TO_END_S: Final = 10.0  # with `to_end`: stop if a broker sends nothing for so long before the end


def places(
    client: "Consumer", topic: str, access: Access, *, partition: int | None, from_beginning: bool, offset: int | None
) -> "list[TopicPartition]":
    """The partitions to read, each with the offset to start at; a negative `offset` counts from the end."""
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    numbers = partitions_of(client.list_topics, topic, access)
    if partition is not None:
        if partition not in numbers:
            raise Failed(f"{topic} has no partition {partition}: its partitions are 0 to {len(numbers) - 1}.")
        numbers = [partition]
    if from_beginning or offset is None:
        return [TopicPartition(topic, number, OFFSET_BEGINNING if from_beginning else OFFSET_END) for number in numbers]
    if offset >= 0:
        return [TopicPartition(topic, number, offset) for number in numbers]
    found = []
    with asking(access, f"find the end of {topic}"):
        for number in numbers:
            first, end = client.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_TIMEOUT_S)
            found.append(TopicPartition(topic, number, max(first, end + offset)))
    return found


class Reading:
    """Messages of the assigned partitions, in lists, until `most` messages, the end, or `timeout_s` without any."""

    def __init__(
        self, client: "Consumer", partitions: list[int], *, most: int | None, timeout_s: float | None, to_end: bool
    ) -> None:
        self.count = 0
        self.next_offsets: dict[int, int] = {}  # by partition, after its last message; empty before the first
        self._client = client
        self._most = most
        self._idle_max_s = IDLE_TO_END_S if to_end and timeout_s is None else timeout_s
        self._progress_at = time.monotonic()
        self._to_end = to_end
        self._before_end = dict.fromkeys(partitions) if to_end else {}  # partitions whose end is not reached

    @property
    def complete(self) -> bool:
        """Whether `most` messages were received, if there is such a bound."""
        return self._most is None or self.count >= self._most

    @property
    def idle_max_s(self) -> float | None:
        """Reading stops after this long without a message; None: never."""
        return self._idle_max_s

    @property
    def partitions_before_end(self) -> list[int]:
        """With `to_end`, the partitions whose end was not reached; none if `most` messages were received."""
        return [] if self._most is not None and self.complete else list(self._before_end)

    def lists(self) -> "Iterator[list[Message]]":
        while not self._is_over():
            got = [one for one in self._client.consume(self._wanted(), POLL_S) if self._is_message(one)]
            if got:
                self.count += len(got)
                self._progress_at = time.monotonic()
                self.next_offsets |= {one.partition() or 0: (one.offset() or 0) + 1 for one in got}
                yield got
                self._progress_at = time.monotonic()  # the caller's processing does not count as idle time

    def _wanted(self) -> int:
        return MESSAGES_PER_POLL_MAX if self._most is None else min(MESSAGES_PER_POLL_MAX, self._most - self.count)

    def _is_over(self) -> bool:
        if self._most is not None and self.count >= self._most:
            return True
        if self._to_end and not self._before_end:
            return True
        return self._idle_max_s is not None and time.monotonic() - self._progress_at > self._idle_max_s

    def _is_message(self, message: "Message") -> bool:
        error = message.error()
        if error is None:
            return True
        self._handle_error(error, message)
        return False

    def _handle_error(self, error: "KafkaError", message: "Message") -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:
            if self._before_end.pop(message.partition() or 0, self) is None:
                self._progress_at = time.monotonic()
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise Failed(
                f"the offset to start at does not exist in partition {message.partition()}.\n"
                "`tailrace topic describe` shows its first and end offset."
            )
        elif not error.retriable() and error.code() not in (
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError.COORDINATOR_NOT_AVAILABLE,  # irrelevant: no group is joined
        ):
            raise Failed(f"cannot read: {sentence(error)}.")
