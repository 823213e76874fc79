"""Topics for the pipeline's benchmarks: whole batches of random records, written as they are, and their sum."""

import os
import time
from dataclasses import dataclass
from zlib import crc32

from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

key_bytes = 16
partitions = 4
settle_timeout_ms = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    topic: str
    record_bytes: int  # key and value
    per_batch: int
    batches: int  # in each partition

    @property
    def records(self) -> int:
        return self.per_batch * self.batches * partitions


def one_batch(load: Load) -> tuple[bytes, int]:
    """A batch of random keys and values, and the sum of its values' CRC-32."""
    now_ms = int(time.time() * 1000)
    new = [
        NewRecord(os.urandom(load.record_bytes - key_bytes), os.urandom(key_bytes), timestamp=now_ms + number // 100)
        for number in range(load.per_batch)
    ]
    return bytes(build_batch(new)), sum(crc32(one.value or b"") for one in new)


def fill(cluster: Cluster, load: Load) -> int:
    """Make the topic and write it; the sum of all values' CRC-32."""
    room = NewTopicConfig(name="max.message.bytes", value=str(4 * 1024 * 1024))
    wanted = NewTopic(name=load.topic, num_partitions=partitions, replication_factor=1, configs=(room,))
    cluster.ask_any(CreateTopicsRequest(topics=(wanted,), timeout_ms=settle_timeout_ms))
    cluster.partitions([load.topic])
    batch, total = one_batch(load)
    for number in range(partitions):
        of = TopicPartition(load.topic, number)
        one = PartitionToProduce(partition=number, records=memoryview(batch))
        topics = (TopicToProduce(name=load.topic, partitions=(one,)),)
        request = ProduceRequest(acks=-1, timeout_ms=settle_timeout_ms, topics=topics)
        for _ in range(load.batches):
            answer = cluster.until_answered(lambda of=of, request=request: cluster.leader(of).call(request))  # type: ignore[misc]
            check(answer.topics[0].partitions[0].error_code, f"fill {load.topic}")
    return total * load.batches * partitions
