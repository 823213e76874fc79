"""A broker that compacts eagerly, and topics of small segments that tests fill and see compacted.

A pass is due as soon as a segment is closed and its recovery point is recorded. Tests wait for the line of the broker's
log that says how far a topic is compacted.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tailrace.pipeline.arrow.encode import Rows
from tailrace.pipeline.kafka.cleanup_policy import TOPIC_RESOURCE, compacted_topics
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.pipeline.kafka.producer import Producer
from tailrace.pipeline.kafka.transactions import end_transaction, init_transactions
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tests.pipeline.test_sink import records
from tests.pipeline.topics import make_topic, write

COMPACTED: Final = re.compile(r"(\S+)-0: compacted up to offset (\d+) ")
EAGER: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "log_cleaner_backoff_ms": 20,
        "log_flush_offset_checkpoint_interval_ms": 100,
        "log_retention_check_interval_ms": 100,
    }
)
SMALL_SEGMENTS: Final = MappingProxyType(
    {"segment.bytes": "16384", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
)
COMPACTED_TIMEOUT_S: Final = 30.0
NOW_MS: Final = int(time.time() * 1000)  # segments with old records are closed at once, and these shall not be
PASSES_MAX: Final = 20
FULL_SEGMENT: Final = b"x" * 16384  # a record with this value fills a segment


class CompactionLog:
    """How far topics are compacted, by the broker's log."""

    def __init__(self) -> None:
        self._upto: dict[str, int] = {}
        self._changed = threading.Condition()

    def take(self, line: str) -> None:
        if found := COMPACTED.search(line):
            with self._changed:
                self._upto[found[1]] = int(found[2])
                self._changed.notify_all()

    def wait_for(self, topic: str, upto: int) -> None:
        """Wait until a pass over the topic's first partition has covered everything below `upto`."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._upto.get(topic, 0) >= upto, COMPACTED_TIMEOUT_S)
            assert done, f"{topic} is compacted up to {self._upto.get(topic, 0)}, and not up to {upto}"


class Compacting(NamedTuple):
    broker: Broker
    cluster: Cluster
    log: CompactionLog

    def make(self, topic: str, *, policy: str = "compact", settings: Mapping[str, str] = SMALL_SEGMENTS) -> None:
        make_topic(self.cluster, topic, policy=policy, settings=settings)

    def change_policy(self, topic: str, policy: str) -> None:
        change = ConfigChange(name="cleanup.policy", config_operation=0, value=policy)
        resource = ResourceToAlter(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(change,))
        answer = self.cluster.call_any(IncrementalAlterConfigsRequest(resources=(resource,)))
        check(answer.resources[0].error_code, f"change {topic}")
        deadline = time.monotonic() + COMPACTED_TIMEOUT_S
        while bool(compacted_topics(self.cluster, [topic])) != ("compact" in policy):
            assert time.monotonic() < deadline, f"{topic} did not become {policy}"

    def remove_tombstones(self, topic: str) -> None:
        """Compact until no reader sees a tombstone any more."""
        for _ in range(PASSES_MAX):
            if all(record.value is not None for record in records(self.cluster, topic)):
                return
            self.compact(topic)
        raise AssertionError(f"{topic} has tombstones after {PASSES_MAX} passes")

    def compact(self, topic: str) -> int:
        """Close the active segment, and wait until everything before it is compacted; the offset up to which."""
        upto = write(self.cluster, topic, [NewRecord(FULL_SEGMENT, b"end", timestamp=NOW_MS)])
        write(self.cluster, topic, [NewRecord(FULL_SEGMENT, b"end", timestamp=NOW_MS)])
        self.log.wait_for(topic, upto)
        return upto


@contextmanager
def compacting_broker() -> Iterator[Compacting]:
    log = CompactionLog()
    with Broker(fsync="never", on_log=log.take, **EAGER) as broker, Cluster(broker.bootstrap) as cluster:
        yield Compacting(broker, cluster, log)


def values(keys: Sequence[str], generation: int) -> list[NewRecord]:
    """A new value of each key."""
    return [NewRecord(f"{key} {generation}".encode(), key.encode(), timestamp=NOW_MS + generation) for key in keys]


def tombstones(keys: Sequence[str]) -> list[NewRecord]:
    return [NewRecord(None, key.encode(), timestamp=NOW_MS) for key in keys]


def write_in_transaction(
    cluster: Cluster, name: str, topic: str, records: Sequence[NewRecord], *, commit: bool
) -> None:
    """Write records in a transaction of this transactional id, whose producer id stays the same, and end it."""
    transaction = init_transactions(cluster, name, 60_000)
    producer = Producer(cluster, transaction.producer, transaction=transaction)
    rows = Rows(
        key=pa.array([one.key for one in records], pa.binary()),
        value=pa.array([one.value for one in records], pa.binary()),
        timestamp=np.array([one.timestamp for one in records]),
    )
    producer.write(TopicPartition(topic, 0), rows)
    producer.flush()
    end_transaction(cluster, transaction, commit=commit)
