"""For tests of compacted topics with other people's programs: brokers that compact often, the size of a topic on disk,
and reading a topic from its start, over the holes that compaction leaves.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from tests.interop.client import DEADLINE_S, Client
from tests.interop.messages import Received

# By default a broker looks for work every 15 s, and compacts what lies below the last checkpoint, up to a minute old.
QUICK_COMPACTION: Final[Mapping[str, Any]] = {
    "log_cleaner_backoff_ms": 200,
    "log_flush_offset_checkpoint_interval_ms": 500,
}
BATCH_BYTES: Final = 61  # a batch's header, which is also what is left of a batch without records


class Stored:
    """The files of a topic, in the data directories of all brokers that have it."""

    def __init__(self, data_dirs: Sequence[Path], topic: str, bench: Client) -> None:
        self.topic = topic
        described = bench.describe_topic(topic)
        topic_id = str(described.topic_id).translate(str.maketrans("+/", "-_"))  # librdkafka has another base64
        names = [f"{topic_id}-{partition}" for partition in described.partitions]
        self._folders = [data / name for data in data_dirs for name in names]
        self.most_bytes = 0  # of one replica of one partition

    def look(self) -> int:
        """The size of the largest replica of a partition. Files come and go meanwhile."""
        most = max(sum(map(_size, folder.glob("*.log"))) for folder in self._folders)
        self.most_bytes = max(self.most_bytes, most)
        return most


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def bound_bytes(live: int, record_bytes: int, slack_bytes: int) -> int:
    """What a compacted partition may take: each live record in a batch of its own, an empty batch in the hole before
    it, as much again that is not compacted yet, and the slack: segments that are not closed, what is written while
    compaction runs."""
    return 2 * live * (2 * BATCH_BYTES + record_bytes) + slack_bytes


def from_start(bootstrap: str, topic: str, partition: int) -> list[Received]:
    """All committed records that a reader of librdkafka sees; no offset comes twice, or after a larger one."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    try:
        records = list(_to_the_end(consumer))
    finally:
        consumer.close()
    assert_in_order(records)
    return records


def _to_the_end(consumer: Consumer) -> Iterator[Received]:
    until = time.monotonic() + 4 * DEADLINE_S
    while time.monotonic() < until:
        for message in consumer.consume(1000, timeout=0.5):
            if (error := message.error()) is not None:
                assert error.name() == "_PARTITION_EOF", error
                return
            offset = message.offset()
            assert offset is not None
            yield Received(
                offset=offset,
                key=message.key(),
                value=message.value(),
                headers=(),
                timestamp_ms=message.timestamp()[1],
                append_time=None,
            )
    raise AssertionError("the end of the partition was not reached in time")


def assert_in_order(records: Sequence[Received]) -> None:
    """No offset comes twice or after a larger one."""
    offsets = [record.offset for record in records]
    assert all(one < next for one, next in pairwise(offsets)), offsets


def table_of(records: Sequence[Received]) -> dict[str, str]:
    """The table that a compacted topic is."""
    table: dict[str, str] = {}
    for record in records:
        assert record.key is not None
        if record.value is None:
            table.pop(record.key.decode(), None)
        else:
            table[record.key.decode()] = record.value.decode()
    return table


def differences(found: Mapping[str, str], expected: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """By key, what was found and what was expected: a table of thousands is no message."""
    keys = dict.fromkeys([*found, *expected])
    return {key: (found.get(key), expected.get(key)) for key in keys if found.get(key) != expected.get(key)}


def for_seconds(duration_s: float, every_s: float, step: Callable[[], None], *, at_least: int = 0) -> None:
    """Take a step every so often, for so long; longer on a slow machine, until there are so many."""
    began, steps = time.monotonic(), 0
    while (now := time.monotonic()) < began + duration_s or steps < at_least:
        if now >= began + steps * every_s:
            step()
            steps += 1
        else:
            time.sleep(0.005)
