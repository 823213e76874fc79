"""Why a reader did not get to the end of a partition, and where it stood.

librdkafka asks again, and says nothing, when a broker answers a fetch with an error that a retry may mend: damaged
storage is one of them. So when nothing comes, we ask ourselves: where the partition ends, and what the broker says to
one plain fetch at the place where the reader stands.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from tailrace.cli.client.kafka_client import sentence
from tailrace.model.limits import MiB
from tailrace.ports import system_ports
from tailrace.wire.client import ConnectionLost, WireClient
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.primitives import WireError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

PROBE_TIMEOUT_S: Final = 3.0
LAST_BY_NAME: Final = 11  # the last plain version of Fetch that names topics; every Kafka since 2.3 has it


def where_it_stands(client: "Consumer", topic: str, partition: int, next_offset: int | None) -> str:
    """`partition 2 of orders was read up to offset 5, its end is 20 (…)`; `next_offset` is None before any message."""
    from confluent_kafka import KafkaException, TopicPartition

    name = f"partition {partition} of {topic}"
    try:
        first, end = client.get_watermark_offsets(TopicPartition(topic, partition), timeout=PROBE_TIMEOUT_S)
    except KafkaException as exception:
        told = f"{name} does not tell its end ({sentence(exception.args[0])})"
        return told if next_offset is None else f"{told}; it was read up to offset {next_offset}"
    at = first if next_offset is None else next_offset
    refused = _refusal(client, topic, partition, at)
    return f"{name} was read up to offset {at}, its end is {end}" + (f" ({refused})" if refused else "")


def _refusal(client: "Consumer", topic: str, partition: int, offset: int) -> str | None:
    """What the leader has against a fetch; None when it has nothing, or cannot be asked."""
    from confluent_kafka import KafkaException

    try:
        known = client.list_topics(topic, timeout=PROBE_TIMEOUT_S)
        leader = known.brokers[known.topics[topic].partitions[partition].leader]
        code = asyncio.run(_fetch_once(leader.host, leader.port, topic, partition, offset))
    except (KafkaException, KeyError, OSError, TimeoutError, ConnectionLost, WireError):
        return None
    if code == Error.NONE:
        return None
    return f"the broker answers a fetch there with {Error(code).name}"


async def _fetch_once(host: str, port: int, topic: str, partition: int, offset: int) -> int:
    wanted = PartitionToFetch(partition=partition, fetch_offset=offset, partition_max_bytes=MiB)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=MiB, topics=(TopicToFetch(name=topic, partitions=(wanted,)),)
    )
    async with asyncio.timeout(PROBE_TIMEOUT_S):
        connection = await WireClient.connect(system_ports().net, host, port)
        try:
            fetched = await connection.call(request, LAST_BY_NAME)
        finally:
            connection.close()
    return int(fetched.topics[0].partitions[0].error_code)
