"""The requests of a transactional producer; each is repeated until it succeeds or fails with a fatal error.

With the classic protocol the producer adds partitions to the transaction before it writes to them. With KIP-890
(transaction version 2) the brokers do that, and each end of a transaction raises the producer epoch.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing.scenarios.cluster.clients.coordinator_client import (
    GROUP_TYPE,
    TRANSACTION_TYPE,
    CoordinatorClient,
)
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.wire.errors import Error
from tailrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tailrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TopicToAdd
from tailrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tailrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnPartitionToCommit, TxnTopicToCommit

INIT_VERSION: Final = 4
ADD_VERSION: Final = 3
ADD_OFFSETS_VERSION: Final = 3
TIMEOUT_MS: Final = 1_500
RETRY_SECONDS: Final = 0.1
FATAL_ERRORS: Final = (  # to the transaction, and maybe to the producer: initialize it again
    Error.INVALID_PRODUCER_EPOCH,
    Error.PRODUCER_FENCED,
    Error.INVALID_TXN_STATE,
    Error.TRANSACTION_ABORTABLE,
    Error.INVALID_PRODUCER_ID_MAPPING,
)


class ProducerIdentity(NamedTuple):
    id: int
    epoch: int


class ProtocolVersions(NamedTuple):
    produce: int
    end: int
    commit_offsets: int
    adds_partitions: bool  # the producer adds partitions itself: the classic protocol


CLASSIC: Final = ProtocolVersions(produce=11, end=4, commit_offsets=3, adds_partitions=True)
KIP_890: Final = ProtocolVersions(produce=12, end=5, commit_offsets=5, adds_partitions=False)


class TransactionFailed(Exception):
    """The transaction cannot go on: a fatal error, or the simulated death of its client."""


class TransactionalProducer:
    def __init__(self, router: Router, topic: str, group: str, versions: ProtocolVersions) -> None:
        self._router = router
        self._topic = topic
        self._group = group
        self._id = router.name
        self.versions = versions
        self._coordinator = CoordinatorClient(router, self._id, TRANSACTION_TYPE)
        self._group_coordinator = CoordinatorClient(router, group, GROUP_TYPE)
        self.sequences: dict[int, int] = {}  # the next one, by partition
        self.producer = ProducerIdentity(-1, -1)

    async def init(self) -> None:
        """Get a producer id and epoch; earlier producers with this transactional id are fenced by it."""
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS)

        async def attempt() -> int | None:
            answer: InitProducerIdResponse | None = await self._coordinator.call(request, INIT_VERSION)
            if answer is not None and answer.error_code == 0:
                self._become(ProducerIdentity(answer.producer_id, answer.producer_epoch))
            return self._check_coordinator(self._coordinator, None if answer is None else answer.error_code)

        await self._retry(attempt)

    def _become(self, producer: ProducerIdentity) -> None:
        if producer != self.producer:
            self.producer = producer
            self.sequences.clear()

    async def add(self, partitions: list[int]) -> None:
        if not self.versions.adds_partitions:
            return
        request = AddPartitionsToTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            topics=(TopicToAdd(name=self._topic, partitions=tuple(partitions)),),
        )

        async def attempt() -> int | None:
            answer = await self._coordinator.call(request, ADD_VERSION)
            codes = [] if answer is None else [one.error_code for one in answer.topics[0].partitions]
            return self._check_coordinator(self._coordinator, None if answer is None else max(codes, key=_severity))

        await self._retry(attempt)

    async def write(self, partition: int, value: str) -> int:
        """Write one record; returns its offset."""
        sequence = self.sequences.get(partition, 0)
        request = self.request(self.producer, partition, sequence, value)
        offsets: list[int] = []

        async def attempt() -> int | None:
            code, offset = await self.send(partition, request)
            offsets.append(offset)
            return code

        await self._retry(attempt)
        self.sequences[partition] = sequence + 1
        return offsets[-1]

    def request(self, producer: ProducerIdentity, partition: int, sequence: int, value: str) -> ProduceRequest:
        record = NewRecord(value=value.encode(), timestamp=self._router.ports.clock.wall_ms())
        batch = build_batch(
            [record],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionToProduce(partition=partition, records=bytes(batch))
        topic = TopicToProduce(name=self._topic, partitions=(data,))
        return ProduceRequest(transactional_id=self._id, acks=-1, timeout_ms=1000, topics=(topic,))

    async def send(self, partition: int, request: ProduceRequest) -> tuple[int | None, int]:
        """Send a Produce request once; returns its error code, None if no response came, and the offset."""
        place = await self._router.find(self._topic, partition)
        if place is None or place.leader is None:
            return None, -1
        answer = await self._router.call(place.leader, request, self.versions.produce)
        produced = None if answer is None else answer.topics[0].partitions[0]
        return (None, -1) if produced is None else (produced.error_code, produced.base_offset)

    async def commit_offset(self, offset: int) -> None:
        """Commit the group's offset of partition 0 as a part of the transaction."""
        if self.versions.adds_partitions:
            asked = AddOffsetsToTxnRequest(
                transactional_id=self._id,
                producer_id=self.producer.id,
                producer_epoch=self.producer.epoch,
                group_id=self._group,
            )

            async def add() -> int | None:
                answer = await self._coordinator.call(asked, ADD_OFFSETS_VERSION)
                return self._check_coordinator(self._coordinator, None if answer is None else answer.error_code)

            await self._retry(add)
        part = TxnPartitionToCommit(partition=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=self._group,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            topics=(TxnTopicToCommit(name=self._topic, partitions=(part,)),),
        )

        async def commit() -> int | None:
            answer = await self._group_coordinator.call(request, self.versions.commit_offsets)
            code = None if answer is None else answer.topics[0].partitions[0].error_code
            return self._check_coordinator(self._group_coordinator, code)

        await self._retry(commit)

    async def end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            committed=committed,
        )

        async def attempt() -> int | None:
            answer: EndTxnResponse | None = await self._coordinator.call(request, self.versions.end)
            if answer is not None and answer.error_code == 0 and not self.versions.adds_partitions:
                self._become(ProducerIdentity(answer.producer_id, answer.producer_epoch))
            return self._check_coordinator(self._coordinator, None if answer is None else answer.error_code)

        await self._retry(attempt)

    def _check_coordinator(self, coordinator: CoordinatorClient, code: int | None) -> int | None:
        if code is not None:
            coordinator.check_error(code)
        return code

    async def _retry(self, attempt: Callable[[], Awaitable[int | None]]) -> None:
        while True:
            code = await attempt()
            if code == 0:
                return
            if code in FATAL_ERRORS:
                raise TransactionFailed(Error(code).name)
            if code is not None and not Error(code).retriable:
                raise InvariantViolated(
                    Invariant.TRANSACTIONS, f"{self._id} was refused with {Error(code).name}, which is not retriable"
                )
            await asyncio.sleep(RETRY_SECONDS * (0.5 + self._router.rng.random()))


def _severity(code: int) -> tuple[bool, bool]:
    """Sorts error codes so that the highest decides: fatal errors above other errors above success."""
    return code in FATAL_ERRORS, code != 0
