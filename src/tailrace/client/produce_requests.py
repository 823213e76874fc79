"""Batches of a producer as one request to the broker that leads their partitions."""

from collections.abc import Sequence
from typing import Final

from tailrace.client.batching import Batch
from tailrace.client.transactions import ProducerIdentity
from tailrace.records.build import build_batch
from tailrace.records.compress import Compression
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

ALL_IN_SYNC: Final = -1


def produce_request(
    batches: Sequence[Batch],
    identity: ProducerIdentity,
    *,
    transactional_id: str | None,
    compression: Compression,
    timeout_ms: int,
) -> ProduceRequest:
    by_topic: dict[str, list[PartitionToProduce]] = {}
    for batch in batches:
        encoded = build_batch(
            batch.records,
            compression=compression,
            producer_id=identity.id,
            producer_epoch=identity.epoch,
            base_sequence=batch.sequence,
            transactional=transactional_id is not None,
        )
        one = PartitionToProduce(partition=batch.partition.partition, records=encoded)
        by_topic.setdefault(batch.partition.topic, []).append(one)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=ALL_IN_SYNC,
        timeout_ms=timeout_ms,
        topics=tuple(TopicToProduce(name=name, partitions=tuple(ones)) for name, ones in by_topic.items()),
    )
