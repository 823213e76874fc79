"""Topics for tests: made, written to byte for byte, and shortened, through the pipeline's own client."""

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.records.build import TimestampType, build_batch
from tailrace.records.compress import Compression
from tailrace.records.record import NewRecord
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig
from tailrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

FIRST_TIME = 1_700_000_000_000
keep_all = NewTopicConfig(name="retention.ms", value="-1")  # records of 2023 would be gone within minutes
KNOWN_TIMEOUT_S = 30.0
NO_MORE: Mapping[str, str] = MappingProxyType({})


def make_topic(
    cluster: Cluster, topic: str, partitions: int = 1, *, policy: str = "delete", settings: Mapping[str, str] = NO_MORE
) -> None:
    more = (NewTopicConfig(name=name, value=value) for name, value in settings.items())
    configs = (keep_all, NewTopicConfig(name="cleanup.policy", value=policy), *more)
    wanted = NewTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=configs)
    answer = cluster.call_any(CreateTopicsRequest(topics=(wanted,), timeout_ms=10_000))
    check(answer.topics[0].error_code, f"make {topic}")
    deadline = time.monotonic() + KNOWN_TIMEOUT_S
    while not is_known(cluster, topic):  # Apache Kafka says that it is made before every broker can tell of it
        assert time.monotonic() < deadline, f"{topic} was made, and nobody knows of it"


def is_known(cluster: Cluster, topic: str) -> bool:
    try:
        return bool(cluster.partitions([topic]))
    except PipelineFailed:
        return False


def remove_topic(cluster: Cluster, topic: str) -> None:
    cluster.call_any(DeleteTopicsRequest(topics=(TopicToDelete(name=topic),), timeout_ms=10_000))


def numbered(count: int, start: int = 0) -> list[NewRecord]:
    """Records that say which they are, a second apart."""
    return [
        NewRecord(b"value %d" % number, b"key %d" % (number % 7), timestamp=FIRST_TIME + 1000 * number)
        for number in range(start, start + count)
    ]


def write(
    cluster: Cluster,
    topic: str,
    records: Sequence[NewRecord],
    *,
    partition: int = 0,
    compression: Compression = "none",
    timestamp_type: TimestampType = "CreateTime",
) -> int:
    """Append one batch; the offset of its first record."""
    batch = build_batch(records, compression=compression, timestamp_type=timestamp_type)
    return write_bytes(cluster, topic, bytes(batch), partition=partition)


def write_bytes(cluster: Cluster, topic: str, batch: bytes, *, partition: int = 0) -> int:
    one = PartitionToProduce(partition=partition, records=memoryview(batch))
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topics=(TopicToProduce(name=topic, partitions=(one,)),))

    def ask() -> int:
        got = cluster.leader(TopicPartition(topic, partition)).call(request).topics[0].partitions[0]
        check(got.error_code, f"write to {topic}")
        return int(got.base_offset)

    return cluster.with_retries(ask)


def shorten(cluster: Cluster, topic: str, before: int, *, partition: int = 0) -> None:
    """Forget what stands before an offset, as retention does."""
    one = PartitionToTrim(partition=partition, offset=before)
    request = DeleteRecordsRequest(topics=(TopicToTrim(name=topic, partitions=(one,)),), timeout_ms=10_000)
    answer = cluster.leader(TopicPartition(topic, partition)).call(request)
    check(answer.topics[0].partitions[0].error_code, f"shorten {topic}")
