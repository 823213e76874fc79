"""Reading a topic by assignment: where to begin, when to stop, what to make of errors in between."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, asking, partitions_of, sentence
from tailrace.cli.failure import Failed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

POLL_S: Final = 0.1  # how long Ctrl-C, or a message that comes alone, may wait
MESSAGES_PER_POLL_MAX: Final = 500
QUIET_TO_END_S: Final = 10.0  # a broker that has more before the end, and sends nothing for so long, will not


def places(
    client: "Consumer", topic: str, bootstrap: str, *, partition: int | None, from_beginning: bool, offset: int | None
) -> "list[TopicPartition]":
    """The partitions to read, each with its first offset; a negative `offset` counts from the end."""
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    numbers = partitions_of(client.list_topics, topic, bootstrap)
    if partition is not None:
        if partition not in numbers:
            raise Failed(f"{topic} has no partition {partition}: its partitions are 0 to {len(numbers) - 1}.")
        numbers = [partition]
    if from_beginning or offset is None:
        return [TopicPartition(topic, number, OFFSET_BEGINNING if from_beginning else OFFSET_END) for number in numbers]
    if offset >= 0:
        return [TopicPartition(topic, number, offset) for number in numbers]
    found = []
    with asking(bootstrap, f"find the end of {topic}"):
        for number in numbers:
            first, end = client.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_TIMEOUT_S)
            found.append(TopicPartition(topic, number, max(first, end + offset)))
    return found


class Reading:
    """Messages of the assigned partitions, a list at a time, until there is a reason to stop."""

    def __init__(
        self, client: "Consumer", partitions: list[int], *, most: int | None, timeout_s: float | None, to_end: bool
    ) -> None:
        self.count = 0
        self.next_offsets: dict[int, int] = {}  # after the last message of each partition that gave any
        self._client = client
        self._most = most
        self._quiet_max_s = QUIET_TO_END_S if to_end and timeout_s is None else timeout_s
        self._progress_at = time.monotonic()
        self._to_end = to_end
        self._before_end = dict.fromkeys(partitions) if to_end else {}  # partitions whose end we have not met

    @property
    def complete(self) -> bool:
        """Whether as many came as were asked for."""
        return self._most is None or self.count >= self._most

    @property
    def quiet_max_s(self) -> float | None:
        """How long nothing may come before the reading is over; None: for ever."""
        return self._quiet_max_s

    @property
    def short_of_end(self) -> list[int]:
        """Partitions whose end was asked for and not met; none when enough messages came before it."""
        return [] if self._most is not None and self.complete else list(self._before_end)

    def lists(self) -> "Iterator[list[Message]]":
        while not self._is_over():
            got = [one for one in self._client.consume(self._wanted(), POLL_S) if self._is_message(one)]
            if got:
                self.count += len(got)
                self._progress_at = time.monotonic()
                self.next_offsets |= {one.partition() or 0: (one.offset() or 0) + 1 for one in got}
                yield got
                self._progress_at = time.monotonic()  # a slow reader of ours is not a silent broker

    def _wanted(self) -> int:
        return MESSAGES_PER_POLL_MAX if self._most is None else min(MESSAGES_PER_POLL_MAX, self._most - self.count)

    def _is_over(self) -> bool:
        if self._most is not None and self.count >= self._most:
            return True
        if self._to_end and not self._before_end:
            return True
        return self._quiet_max_s is not None and time.monotonic() - self._progress_at > self._quiet_max_s

    def _is_message(self, message: "Message") -> bool:
        error = message.error()
        if error is None:
            return True
        self._meet(error, message)
        return False

    def _meet(self, error: "KafkaError", message: "Message") -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:
            if self._before_end.pop(message.partition() or 0, self) is None:
                self._progress_at = time.monotonic()
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise Failed(
                f"partition {message.partition()} does not hold the offset asked for.\n"
                "`tailrace topic describe` shows its first and end offset."
            )
        elif not error.retriable() and error.code() not in (
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError.COORDINATOR_NOT_AVAILABLE,  # of the group that we do not use
        ):
            raise Failed(f"cannot read: {sentence(error)}.")
