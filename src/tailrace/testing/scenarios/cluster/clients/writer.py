"""A producer in the cluster: it sends numbered batches to the leader, and records each acknowledgement as a claim.

An idempotent producer sends up to four pipelined batches, and repeats each until it is acknowledged. A plain one with
acks=all does the same with one batch at a time, so it may write a batch twice. With acks=1 it sends each batch once and
accepts any response. If its topic was recreated, it starts over with a new producer id.

Some idempotent producers are sticky: they usually retry at the same broker, whichever broker leads by now. That broker
may lead again after it truncated the batches it had appended for them.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, TopicPartition
from tailrace.records.build import build_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.wire.errors import Error
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, ProduceResponse, TopicToProduce

PRODUCE_VERSION: Final = 13
INIT_VERSION: Final = 4
TIMEOUT_MS: Final = 1000
RETRY_SECONDS: Final = 0.1
PADDING_SIZES: Final = (0, 10, 10, 300)  # bytes per record
STICKY_CHANCE: Final = 0.9  # that a sticky producer stays with its broker after an error


@frozen
class ProduceMode:
    idempotent: bool
    acks: int


class AcknowledgedBatches(Protocol):
    """Compares what producers are told with what is committed."""

    def acknowledged(self, key: TopicPartition, base: int, crc: int, client: str) -> None: ...


class UnacknowledgedBatch(NamedTuple):
    records: int
    crc: int
    request: ProduceRequest


class Writer:
    def __init__(
        self,
        router: Router,
        claims: AcknowledgedBatches,
        mode: ProduceMode,
        topic: Callable[[], str],
        partition: int,
        rest_max_seconds: float,
    ) -> None:
        self.name = router.name
        self._mode = mode
        self._router = router
        self._rng = router.rng
        self._claims = claims
        self._topic = topic
        self._partition = partition
        self._rest_max_seconds = rest_max_seconds
        self._topic_id: Id | None = None
        self._leader: str | None = None  # the host to send to; None: unknown
        self._is_sticky = mode.idempotent and self._rng.random() < 0.5
        self._start_over()
        self.acknowledged = 0  # batches, with acks=all
        self.acknowledged_acks_1 = 0  # batches, with acks=1
        self.refused = 0  # batches, with an error
        self.stopping = False

    def _start_over(self) -> None:
        """Drop all state of the producer, because its topic was deleted."""
        self._producer_id = -1
        self._sent = 0  # records
        self._is_known = False  # the partition has the producer's state, from a batch that was acknowledged
        self._window: list[UnacknowledgedBatch] = []

    @property
    def done(self) -> bool:
        """Whether every batch that was sent is acknowledged."""
        return not self._window

    async def run(self) -> None:
        while not (self.stopping and self.done):
            if await self._find_leader() and await self._init_producer_id():
                if not self._window:
                    self._window = [self._next_batch() for _ in range(self._window_size())]
                await self._send()
            await asyncio.sleep(self._pause())

    def _window_size(self) -> int:
        # the first batch is sent alone: like Kafka, the broker accepts any sequence from a producer new to it
        return self._rng.choice([1, 1, 2, 4]) if self._mode.idempotent and self._is_known else 1

    def _pause(self) -> float:
        if self._window:
            return RETRY_SECONDS * (0.5 + self._rng.random())
        return self._rng.random() * self._rest_max_seconds

    # Preparation

    async def _find_leader(self) -> bool:
        """Look the leader up if it is unknown; False if none was found."""
        if self._leader is None:
            place = await self._router.find(self._topic(), self._partition)
            if place is not None:
                self._leader = place.leader
                if place.topic_id != self._topic_id:
                    self._topic_id = place.topic_id
                    self._start_over()
        return self._leader is not None

    async def _init_producer_id(self) -> bool:
        """Get a producer id if one is needed; False if that failed."""
        if not self._mode.idempotent or self._producer_id >= 0:
            return True
        request = InitProducerIdRequest(transaction_timeout_ms=0)
        answer: InitProducerIdResponse | None = await self._router.call_any(request, INIT_VERSION)
        if answer is not None and answer.error_code == 0:
            self._producer_id = answer.producer_id
        return self._producer_id >= 0

    # Sending

    def _next_batch(self) -> UnacknowledgedBatch:
        assert self._topic_id is not None
        first, count = self._sent, self._rng.randrange(1, 4)
        self._sent += count
        batch = self._batch(first, count)
        data = PartitionToProduce(partition=self._partition, records=batch)
        topic = TopicToProduce(topic_id=self._topic_id, partitions=(data,))
        request = ProduceRequest(acks=self._mode.acks, timeout_ms=TIMEOUT_MS, topics=(topic,))
        return UnacknowledgedBatch(count, read_header(batch).crc, request)

    def _batch(self, first: int, count: int) -> bytes:
        now_ms, padding = self._router.ports.clock.wall_ms(), b"x" * self._rng.choice(PADDING_SIZES)
        records = [
            NewRecord(value=f"{self.name} {number} ".encode() + padding, timestamp=now_ms)
            for number in range(first, first + count)
        ]
        if not self._mode.idempotent:
            return bytes(build_batch(records))
        return bytes(build_batch(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=first))

    async def _send(self) -> None:
        """Send the whole window once; batches that were not acknowledged stay in it, in order."""
        assert self._leader is not None
        window, leader, topic_id = self._window, self._leader, self._topic_id
        requests = [batch.request for batch in window]
        responses: list[ProduceResponse | None] = await self._router.call_pipelined(leader, requests, PRODUCE_VERSION)
        unacknowledged: list[UnacknowledgedBatch] = []
        for batch, response in zip(window, responses, strict=True):
            if response is None:
                self._change_leader(None)
            elif self._is_acknowledged(batch, response, topic_id, follows_a_failed_batch=bool(unacknowledged)):
                continue
            unacknowledged.append(batch)
        self._window = unacknowledged if self._mode.acks < 0 else []

    def _is_acknowledged(
        self,
        batch: UnacknowledgedBatch,
        response: ProduceResponse,
        topic_id: Id | None,
        *,
        follows_a_failed_batch: bool,
    ) -> bool:
        produced = response.topics[0].partitions[0]
        if produced.error_code != 0:
            self._check_is_retriable(Error(produced.error_code), follows_a_failed_batch)
            hosts = {node.node_id: node.host for node in response.node_endpoints}
            self._change_leader(hosts.get(produced.current_leader.leader_id))
            return False
        self._is_known = True
        if self._mode.acks < 0:
            assert topic_id is not None
            key = TopicPartition(topic_id, self._partition)
            self._claims.acknowledged(key, produced.base_offset, batch.crc, self.name)
            self.acknowledged += 1
        else:
            self.acknowledged_acks_1 += 1
        return True

    def _change_leader(self, leader: str | None) -> None:
        if self.stopping or not self._is_sticky or self._rng.random() > STICKY_CHANCE:
            self._leader = leader

    def _check_is_retriable(self, error: Error, follows_a_failed_batch: bool) -> None:
        self.refused += 1
        if error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and follows_a_failed_batch:
            return
        if not error.retriable:
            raise InvariantViolated(
                Invariant.NOTHING_LOST, f"{self.name}: a batch was refused with {error.name}, which is not retriable"
            )
