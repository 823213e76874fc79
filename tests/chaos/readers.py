"""What consumers find: one that reads along with the storm, and one that reads everything back when it is over.

Both note which record stands at which offset. A consumer never sees what is not committed, so what was read along must
be there, at the same place, when all is read back; whatever happened in between.
"""

import threading
import time
from array import array
from collections.abc import Iterable, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.chaos.record_key import RecordKey

BATCH_MAX: Final = 1_000
POLL_S: Final = 0.05
COMPLAINTS_MAX: Final = 10


class Found:
    """One partition's records as they came: three columns, as there may be a million."""

    __slots__ = ("numbers", "offsets", "writers")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.writers = array("q")
        self.numbers = array("q")

    def add(self, offset: int, key: RecordKey) -> None:
        self.offsets.append(offset)
        self.writers.append(key.writer)
        self.numbers.append(key.number)

    def __len__(self) -> int:
        return len(self.offsets)

    def row(self, place: int) -> tuple[int, int, int]:
        """Offset, writer, number."""
        return self.offsets[place], self.writers[place], self.numbers[place]


class Reader:
    """Reads a topic's partitions from their beginning, in the thread of whoever calls `read`."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.found = [Found() for _ in range(partitions)]
        self.complaints: list[str] = []
        self.ends_read: list[int] = []
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "nobody",  # it assigns by itself
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])

    def read(self) -> None:
        """What is there within a moment."""
        for message in self._consumer.consume(BATCH_MAX, POLL_S):
            self._take(message)

    def _take(self, message: Message) -> None:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None or partition is None or offset is None:
            if error is None or not error.retriable():
                self._complain(f"reading partition {partition} at {offset}: {error}")
            return
        key = RecordKey.of(message.key() or b"")
        found = self.found[partition]
        if key.partition != partition:
            self._complain(f"{key} stands in partition {partition} at {offset}")
        if found.offsets and offset <= found.offsets[-1]:
            self._complain(f"partition {partition}: offset {offset} was read after {found.offsets[-1]}")
        found.add(offset, key)

    def _complain(self, complaint: str) -> None:
        if len(self.complaints) < COMPLAINTS_MAX:
            self.complaints.append(complaint)

    def ends(self, within_s: float) -> list[int]:
        """Where the partitions end, as their leaders say."""
        deadline = time.monotonic() + within_s
        found = []
        for number in range(len(self.found)):
            while True:
                try:
                    found.append(self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), 5.0)[1])
                    break
                except KafkaException:
                    if time.monotonic() > deadline:
                        raise
        return found

    def reach(self, ends: Sequence[int], within_s: float) -> None:
        """Read on until all partitions have been read up to there; a control batch may stand before the end."""
        self.ends_read = list(ends)
        deadline = time.monotonic() + within_s
        wanted = [TopicPartition(self._topic, number) for number in range(len(self.found))]
        while behind := [
            (at.partition, at.offset, ends[at.partition])
            for at in self._consumer.position(wanted)
            if at.offset < ends[at.partition]
        ]:
            self.read()
            if time.monotonic() > deadline:
                self._complain(f"not read to the end within {within_s:g} s: partition, offset, end: {behind[:5]}")
                return

    def close(self) -> None:
        self._consumer.close()


class Companion:
    """Reads along in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.reader = Reader(bootstrap, topic, partitions)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="companion", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.reader.read()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


def read_back(bootstrap: str, topic: str, partitions: int, within_s: float) -> Reader:
    """All of it, by somebody new."""
    reader = Reader(bootstrap, topic, partitions)
    try:
        reader.reach(reader.ends(within_s), within_s)
    finally:
        reader.close()
    return reader


def complaints_of(readers: Iterable[Reader]) -> list[str]:
    return [complaint for reader in readers for complaint in reader.complaints]
