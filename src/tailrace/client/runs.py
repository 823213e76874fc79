"""Records for several partitions of a topic as runs: those of one partition stand together, and have one future.

The future has where the first record of its run was written; the others follow it, since a batch is appended whole. For
callers that send many records at a time, one future a record is most of what a record costs.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from tailrace.client.producer import Producer, Written
from tailrace.model.ids import PartitionName
from tailrace.records.record import NewRecord


class Run(NamedTuple):
    places: Sequence[int]  # which of the records that were given, in ascending order
    written: "asyncio.Future[Written]"  # the first of them


async def send_by_partition(
    producer: Producer, topic: str, records: Sequence[tuple[int | None, NewRecord]]
) -> list[Run]:
    """Send records, each to its partition, or for None to the one that the producer chooses. They wait for room
    together; more than fit into the buffer wait until it is empty."""
    places: dict[int, list[int]] = {}
    for place, (number, record) in enumerate(records):
        if number is None:
            number = await producer.choose_partition(topic, record.key)
        places.setdefault(number, []).append(place)
    found: list[Run] = []
    left = {PartitionName(topic, number): ones for number, ones in places.items()}
    for sent in await producer.send_runs({name: [records[one][1] for one in ones] for name, ones in left.items()}):
        ones = left[sent.partition]
        found.append(Run(ones[: sent.records], sent.written))
        left[sent.partition] = ones[sent.records :]
    return found
