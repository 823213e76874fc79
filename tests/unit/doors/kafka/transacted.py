"""A transactional producer over the wire: tests choose the version of each request."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tailrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TopicToAdd
from tailrace.wire.messages.describe_transactions import DescribedTransaction, DescribeTransactionsRequest
from tailrace.wire.messages.end_txn import EndTxnRequest
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.offset_fetch import GroupTopicWanted, GroupWanted, OffsetFetchRequest
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tailrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnPartitionToCommit, TxnTopicToCommit

BUSY: Final = (
    Error.CONCURRENT_TRANSACTIONS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_ENOUGH_REPLICAS,
)
PATIENCE_S: Final = 10.0
Call = Callable[[object, int], Awaitable[Any]]  # a request, in a version


class Transacted:
    """`call` sends a request to the broker that is leader and coordinator."""

    def __init__(self, call: Call, transactional_id: str = "x") -> None:
        self.call = call
        self.name = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def find(self) -> None:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=(self.name,))
        await self._patiently(request, 6, lambda answer: answer.coordinators[0].error_code)

    async def init(self, version: int = 5, timeout_ms: int = 60_000, *, goes_on: bool = False) -> int:
        """InitProducerId; returns the error."""
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id if goes_on else -1,
            producer_epoch=self.epoch if goes_on else -1,
        )
        answer = await self.call(request, version)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return int(answer.error_code)

    async def begin(self, **settings: Any) -> None:
        """Find the coordinator and call InitProducerId, until it succeeds."""
        await self.find()
        async with asyncio.timeout(PATIENCE_S):
            while (code := await self.init(**settings)) in BUSY:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert code == 0

    async def add(self, places: Mapping[str, Sequence[int]], version: int = 3) -> list[int]:
        """The errors, in order."""
        topics = tuple(TopicToAdd(name=name, partitions=tuple(numbers)) for name, numbers in places.items())
        request = AddPartitionsToTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, topics=topics
        )
        answer = await self.call(request, version)
        return [one.error_code for topic in answer.topics for one in topic.partitions]

    async def write(self, topic: str, *values: str, partition: int = 0, version: int = 11) -> int:
        """Produce one batch; the error."""
        sequence = self._sequences.get((topic, partition), 0)
        batch = build_batch(
            [NewRecord(value=one.encode(), timestamp=1) for one in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = TopicToProduce(name=topic, partitions=(PartitionToProduce(partition=partition, records=bytes(batch)),))
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=5000, topics=(data,))
        answer = await self.call(request, version)
        code: int = answer.topics[0].partitions[0].error_code
        if code == 0:
            self._sequences[topic, partition] = sequence + len(values)
        return code

    async def add_offsets(self, group: str, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=group
        )
        return int((await self.call(request, version)).error_code)

    async def commit_offset(self, group: str, topic: str, offset: int, version: int = 4, **member: Any) -> int:
        one = TxnPartitionToCommit(partition=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(TxnTopicToCommit(name=topic, partitions=(one,)),),
            **member,
        )
        return int((await self.call(request, version)).topics[0].partitions[0].error_code)

    async def end(self, *, committed: bool, version: int = 4, epoch: int | None = None) -> int:
        """EndTxn; returns the error. From version 5 on the producer continues with the epoch of the response."""
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=committed,
        )
        answer = await self.call(request, version)
        if answer.error_code == 0 and version >= 5 and epoch is None:
            if (self.producer_id, self.epoch) != (answer.producer_id, answer.producer_epoch):
                self._sequences.clear()
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)

    async def described(self) -> DescribedTransaction:
        request = DescribeTransactionsRequest(transactional_ids=(self.name,))
        one: DescribedTransaction
        (one,) = (await self.call(request, 0)).transaction_states
        return one

    async def until(self, *states: str) -> None:
        """Wait until the markers are written."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.described()).transaction_state not in states:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def _patiently(self, request: object, version: int, code_of: Any) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while code_of(await self.call(request, version)) in BUSY:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def group_offset(call: Call, group: str, topic: str, *, stable: bool) -> tuple[int, int]:
    """The error and the offset of the first partition."""
    wanted = GroupWanted(group_id=group, topics=(GroupTopicWanted(name=topic, partition_indexes=(0,)),))
    answer = await call(OffsetFetchRequest(groups=(wanted,), require_stable=stable), 9)
    (one,) = answer.groups[0].topics[0].partitions
    return one.error_code, one.committed_offset
