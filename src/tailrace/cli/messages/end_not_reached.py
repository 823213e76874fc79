"""The error of `tailrace consume --to-end` for a partition whose end was not reached: its position, and the cause.

librdkafka silently retries a Fetch that fails with a retriable error, and damaged storage (KAFKA_STORAGE_ERROR) is
retriable. So when no message comes, two requests of our own find the end offset of the partition, and the error code of
one Fetch at the reader's position.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from tailrace.cli.client.kafka_client import sentence
from tailrace.client.connection import Connection
from tailrace.client.faults import ConnectionLost
from tailrace.model.limits import MiB
from tailrace.ports import system_ports
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.primitives import WireError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

PROBE_TIMEOUT_S: Final = 3.0
LAST_BY_NAME: Final = 11  # the last Fetch version without flexible fields, with topic names; in Kafka since 2.3


def describe_position(client: "Consumer", topic: str, partition: int, next_offset: int | None) -> str:
    """`partition 2 of orders was read up to offset 5, its end is 20 (…)`; `next_offset`: None if nothing was read."""
    from confluent_kafka import KafkaException, TopicPartition

    name = f"partition {partition} of {topic}"
    try:
        first, end = client.get_watermark_offsets(TopicPartition(topic, partition), timeout=PROBE_TIMEOUT_S)
    except KafkaException as exception:
        unknown = f"the end of {name} is unknown ({sentence(exception.args[0])})"
        return unknown if next_offset is None else f"{unknown}; it was read up to offset {next_offset}"
    position = first if next_offset is None else next_offset
    error = _fetch_error(client, topic, partition, position)
    return f"{name} was read up to offset {position}, its end is {end}" + (f" ({error})" if error else "")


def _fetch_error(client: "Consumer", topic: str, partition: int, offset: int) -> str | None:
    """The error that the leader answers to a Fetch at `offset`; None if there is none, or no answer."""
    from confluent_kafka import KafkaException

    try:
        metadata = client.list_topics(topic, timeout=PROBE_TIMEOUT_S)
        leader = metadata.brokers[metadata.topics[topic].partitions[partition].leader]
        code = asyncio.run(_fetch_once(leader.host, leader.port, topic, partition, offset))
    except (KafkaException, KeyError, OSError, TimeoutError, ConnectionLost, WireError):
        return None
    if code == Error.NONE:
        return None
    return f"a fetch at that offset fails with {Error(code).name}"


async def _fetch_once(host: str, port: int, topic: str, partition: int, offset: int) -> int:
    wanted = PartitionToFetch(partition=partition, fetch_offset=offset, partition_max_bytes=MiB)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=MiB, topics=(TopicToFetch(name=topic, partitions=(wanted,)),)
    )
    async with asyncio.timeout(PROBE_TIMEOUT_S):
        connection = await Connection.connect(system_ports().net, host, port)
        try:
            fetched = await connection.call(request, LAST_BY_NAME)
        finally:
            connection.close()
    return int(fetched.topics[0].partitions[0].error_code)
