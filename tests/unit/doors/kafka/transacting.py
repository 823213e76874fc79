"""Transactional producers over the wire, without a coordinator: tests replace its answers, and write markers."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.transactions.transaction import Producer
from tailrace.wire.errors import Error
from tailrace.wire.faults import fault_of
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tailrace.wire.messages.write_txn_markers import MarkerToWrite, TopicToMark, WriteTxnMarkersRequest
from tests.unit.doors.kafka.served import Served

READ_COMMITTED = 1
MY_TRANSACTIONS = "mine"


def now_ms() -> int:
    """Markers have the broker's time; a segment does not go on over years."""
    return time.time_ns() // 1_000_000


class Oracle:
    """Replaces the verification by coordinators: answers with the given codes, at once or when `open` is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[PartitionName, ...]] = []
        self.added: list[PartitionName] = []
        self.codes: list[Error] = []  # for all partitions of one question after the other; then yes
        self.fault: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def verify(
        self, transactional_id: str, producer: Producer, partitions: Sequence[PartitionName], *, add: bool
    ) -> Mapping[PartitionName, Fault]:
        assert transactional_id == MY_TRANSACTIONS
        self.asked.append(tuple(partitions))
        await self.open.wait()
        if self.fault is not None:
            raise self.fault
        fault = fault_of(self.codes.pop(0)) if self.codes else None
        if fault is None and add:
            self.added += partitions
        return {} if fault is None else dict.fromkeys(partitions, fault)


class Refuses(Oracle):
    def __init__(self, fault: Fault | Exception) -> None:
        super().__init__()
        self.fault = fault


def oracle_for(*served: Served) -> Oracle:
    oracle = Oracle()
    for one in served:
        one.node.services.writer.verifier = oracle
        one.node.services.transactions.offset_commits.verifier = oracle
    return oracle


def produce(
    value: str,
    *,
    producer: int = 7,
    epoch: int = 0,
    sequence: int = 0,
    acks: int = -1,
    partitions: Sequence[int] = (0,),
) -> ProduceRequest:
    batch = build_batch(
        [NewRecord(value=value.encode(), timestamp=now_ms())],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )
    places = tuple(PartitionToProduce(partition=number, records=bytes(batch)) for number in partitions)
    topics = (TopicToProduce(name="t", partitions=places),)
    return ProduceRequest(transactional_id=MY_TRANSACTIONS, acks=acks, timeout_ms=5000, topics=topics)


async def send(served: Served, value: str, *, version: int = 11, **what: Any) -> tuple[Error, int]:
    """One record in a transaction: the error and the offset."""
    answer = await served.call(produce(value, **what), version)
    one = answer.topics[0].partitions[0]
    return Error(one.error_code), one.base_offset


def marker(
    *,
    producer: int = 7,
    epoch: int = 0,
    coordinator: int = 0,
    commits: bool = False,
    version: int = 0,
    topic: str = "t",
) -> WriteTxnMarkersRequest:
    one = MarkerToWrite(
        producer_id=producer,
        producer_epoch=epoch,
        committed=commits,
        topics=(TopicToMark(name=topic, partitions=(0,)),),
        coordinator_epoch=coordinator,
        transaction_version=version,
    )
    return WriteTxnMarkersRequest(markers=(one,))


async def mark(served: Served, **what: Any) -> Error:
    answer = await served.call(marker(**what), 2)
    return Error(answer.markers[0].topics[0].partitions[0].error_code)


def fetch(offset: int = 0, *, isolation: int = READ_COMMITTED, wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    wanted = PartitionToFetch(partition=0, fetch_offset=offset, partition_max_bytes=10**6)
    topics = (TopicToFetch(name="t", partitions=(wanted,)),)
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=min_bytes, isolation_level=isolation, topics=topics)


async def look(served: Served, offset: int = 0, *, version: int = 11, isolation: int = READ_COMMITTED) -> Any:
    return (await served.call(fetch(offset, isolation=isolation), version)).topics[0].partitions[0]


async def latest(served: Served, *, isolation: int = READ_COMMITTED) -> int:
    asked = TopicAsked(name="t", partitions=(PartitionAsked(partition=0, timestamp=-1),))
    answer = await served.call(ListOffsetsRequest(isolation_level=isolation, topics=(asked,)), 6)
    found: int = answer.topics[0].partitions[0].offset
    return found
