"""Topics of the pipeline benchmarks, created and filled with whole batches."""

import time
from typing import Final

from benchmarks.spark_loads import PARTITIONS, Load, one_batch
from tailrace.model.limits import MiB
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

SETTLE_TIMEOUT_MS: Final = 30_000
BATCH_MAX_BYTES: Final = 16 * MiB


def make_topic(cluster: Cluster, name: str) -> None:
    room = NewTopicConfig(name="max.message.bytes", value=str(BATCH_MAX_BYTES))
    wanted = NewTopic(name=name, num_partitions=PARTITIONS, replication_factor=1, configs=(room,))
    cluster.call_any(CreateTopicsRequest(topics=(wanted,), timeout_ms=SETTLE_TIMEOUT_MS))
    deadline = time.monotonic() + SETTLE_TIMEOUT_MS / 1000
    while True:
        try:
            cluster.partitions([name])
            return
        except PipelineFailed:  # Kafka acknowledges a topic before it is in the metadata
            if time.monotonic() > deadline:
                raise


def fill(cluster: Cluster, load: Load) -> int:
    """Create the topic and fill all partitions alike; return the sum of the CRC-32 of all keys and values."""
    make_topic(cluster, load.topic)
    ready = [one_batch(load) for _ in range(load.varieties)]
    for number in range(load.batches):
        _write(cluster, load.topic, ready[number % len(ready)][0])
    return PARTITIONS * sum(ready[number % len(ready)][1] for number in range(load.batches))


def _write(cluster: Cluster, topic: str, batch: bytes) -> None:
    ones = tuple(PartitionToProduce(partition=number, records=memoryview(batch)) for number in range(PARTITIONS))
    topics = (TopicToProduce(name=topic, partitions=ones),)
    request = ProduceRequest(acks=-1, timeout_ms=SETTLE_TIMEOUT_MS, topics=topics)
    answer = cluster.with_retries(lambda: cluster.leader(TopicPartition(topic, 0)).call(request))
    for one in answer.topics[0].partitions:
        check(one.error_code, f"fill {topic}")
