"""Read a range of one partition, batch upon batch.

The next request leaves before the last answer is worked on, so that broker and reader work at the same time. An
answer's bytes are valid until the next one is asked for.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tailrace.model.limits import MiB
from tailrace.pipeline.arrow.choosing import Chosen, choose
from tailrace.pipeline.failure import BrokersSilent, DataLost
from tailrace.pipeline.kafka.cluster import AskAgain, Cluster, TopicPartition, check, patience_s
from tailrace.records.opened import batches
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch

fetch_bytes: Final = 4 * MiB
wait_ms: Final = 500
in_vain_max: Final = 3  # answers without a record, below the end: compaction has left nothing there


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Offsets of one partition, from `start` up to, not including, `end`."""

    partition: TopicPartition
    start: int
    end: int


def fetch(cluster: Cluster, wanted: Range, *, committed: bool, max_bytes: int = fetch_bytes) -> Iterator[Chosen]:
    """The batches of a range. `DataLost` when the log no longer reaches back to where reading stands."""
    at = wanted.start
    deadline = time.monotonic() + patience_s
    while True:
        try:
            for chosen in _pipelined(cluster, wanted, at, committed=committed, max_bytes=max_bytes):
                yield chosen
                at = chosen.end
                deadline = time.monotonic() + patience_s
            return
        except (AskAgain, BrokersSilent) as why:
            if time.monotonic() > deadline:
                raise BrokersSilent(f"{why}; given up after {patience_s:g} s without a record") from None
            cluster.close()
            cluster.partitions([wanted.partition.topic])  # patient: it fails when nobody answers for long


def _pipelined(cluster: Cluster, wanted: Range, at: int, *, committed: bool, max_bytes: int) -> Iterator[Chosen]:
    connection = cluster.until_answered(lambda: cluster.leader(wanted.partition))
    try:
        if at < wanted.end:
            connection.send(_request(wanted.partition, at, committed=committed, max_bytes=max_bytes))
        in_vain = 0
        while at < wanted.end and in_vain < in_vain_max:
            got = connection.receive().topics[0].partitions[0]
            _check(got, wanted.partition, at)
            data = got.records if got.records is not None else memoryview(b"")
            after = max((header.last_offset + 1 for _, header in batches(data)), default=at)
            if after < wanted.end:
                connection.send(_request(wanted.partition, after, committed=committed, max_bytes=max_bytes))
            if after > at:
                yield choose(data, (got.aborted_transactions or ()) if committed else None)
            elif (readable := got.last_stable_offset if committed else got.high_watermark) < wanted.end:
                raise AskAgain(f"{wanted.partition} can be read up to {readable}, {wanted.end} was expected")
            in_vain = 0 if after > at else in_vain + 1
            at = after
    finally:
        connection.drain()  # whoever stops half way leaves the connection as others need it


def _request(partition: TopicPartition, offset: int, *, committed: bool, max_bytes: int) -> FetchRequest:
    one = PartitionToFetch(partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = TopicToFetch(name=partition.topic, partitions=(one,))
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=max_bytes, isolation_level=int(committed), topics=(topic,)
    )


def _check(got: Any, partition: TopicPartition, at: int) -> None:
    if got.error_code == Error.OFFSET_OUT_OF_RANGE:
        raise DataLost(f"{partition} has no offset {at} any more")
    check(got.error_code, f"read {partition} at offset {at}")
