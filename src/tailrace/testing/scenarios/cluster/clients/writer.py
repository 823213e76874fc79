"""A producer in the cluster: it sends numbered batches to whoever leads, and remembers what it was promised.

An idempotent one sends up to four batches one behind the other, and again until they are acknowledged; a plain one with
acks=all does the same, one at a time, and may so write a batch twice. With acks=1 it sends each batch once and takes
any answer. When its topic is gone, and one of the same name is there, it begins anew with another producer id.

Some are loyal: they ask the same broker again, mostly, whoever leads by now. It may lead again, after it has forgotten
what it had taken from them.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, TopicPartition
from tailrace.records.build import build_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.claims import Claims
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.wire.errors import Error
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, ProduceResponse, TopicToProduce

PRODUCE_VERSION: Final = 13
INIT_VERSION: Final = 4
TIMEOUT_MS: Final = 1000
AGAIN_SECONDS: Final = 0.1
SIZES: Final = (0, 10, 10, 300)
LOYALTY: Final = 0.9


@frozen
class ProduceMode:
    """How a producer asks for its records to be kept."""

    idempotent: bool
    acks: int


class UnacknowledgedBatch(NamedTuple):
    """A batch that was not acknowledged yet."""

    records: int
    crc: int
    request: ProduceRequest


class Writer:
    def __init__(
        self, router: Router, claims: Claims, manner: ProduceMode, topic: Callable[[], str], partition: int, calm: float
    ) -> None:
        self.name = router.name
        self._manner = manner
        self._router = router
        self._rng = router.rng
        self._claims = claims
        self._topic = topic
        self._partition = partition
        self._calm = calm
        self._topic_id: Id | None = None
        self._leader: str | None = None  # whom to send to, as far as known
        self._loyal = manner.idempotent and self._rng.random() < 0.5
        self._begin_anew()
        self.acknowledged = 0  # batches, with acks=all
        self.hurried = 0  # batches, with acks=1
        self.refused = 0
        self.stopping = False

    def _begin_anew(self) -> None:
        """As another producer: nothing is known of what was sent to a topic that is gone."""
        self._producer_id = -1
        self._sent = 0  # records
        self._known = False  # to the partition, by a batch that was acknowledged
        self._window: list[UnacknowledgedBatch] = []

    @property
    def done(self) -> bool:
        """Whether all that was sent is acknowledged."""
        return not self._window

    async def run(self) -> None:
        while not (self.stopping and self.done):
            if await self._find() and await self._introduce():
                if not self._window:
                    self._window = [self._next() for _ in range(self._size())]
                await self._send()
            await asyncio.sleep(self._pause())

    def _size(self) -> int:
        # the first goes alone: of a producer that it does not know, a broker takes any sequence, as Kafka does
        return self._rng.choice([1, 1, 2, 4]) if self._manner.idempotent and self._known else 1

    def _pause(self) -> float:
        if self._window:
            return AGAIN_SECONDS * (0.5 + self._rng.random())
        return self._rng.random() * self._calm

    # Finding the way

    async def _find(self) -> bool:
        """Know whom to send to; False: nobody leads, as far as anybody says."""
        if self._leader is None:
            place = await self._router.find(self._topic(), self._partition)
            if place is not None:
                self._leader = place.leader
                if place.topic_id != self._topic_id:
                    self._topic_id = place.topic_id
                    self._begin_anew()
        return self._leader is not None

    async def _introduce(self) -> bool:
        """Have a producer id, where one is needed."""
        if not self._manner.idempotent or self._producer_id >= 0:
            return True
        request = InitProducerIdRequest(transaction_timeout_ms=0)
        answer: InitProducerIdResponse | None = await self._router.ask_anyone(request, INIT_VERSION)
        if answer is not None and answer.error_code == 0:
            self._producer_id = answer.producer_id
        return self._producer_id >= 0

    # Sending

    def _next(self) -> UnacknowledgedBatch:
        assert self._topic_id is not None
        first, count = self._sent, self._rng.randrange(1, 4)
        self._sent += count
        batch = self._batch(first, count)
        data = PartitionToProduce(partition=self._partition, records=batch)
        topic = TopicToProduce(topic_id=self._topic_id, partitions=(data,))
        request = ProduceRequest(acks=self._manner.acks, timeout_ms=TIMEOUT_MS, topics=(topic,))
        return UnacknowledgedBatch(count, read_header(batch).crc, request)

    def _batch(self, first: int, count: int) -> bytes:
        now_ms, filling = self._router.ports.clock.wall_ms(), b"x" * self._rng.choice(SIZES)
        records = [
            NewRecord(value=f"{self.name} {number} ".encode() + filling, timestamp=now_ms)
            for number in range(first, first + count)
        ]
        if not self._manner.idempotent:
            return bytes(build_batch(records))
        return bytes(build_batch(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=first))

    async def _send(self) -> None:
        """One attempt for the whole window; what is left is sent again, in order."""
        assert self._leader is not None
        window, leader, topic_id = self._window, self._leader, self._topic_id
        requests = [one.request for one in window]
        answers: list[ProduceResponse | None] = await self._router.ask_each(leader, requests, PRODUCE_VERSION)
        left: list[UnacknowledgedBatch] = []
        for one, answer in zip(window, answers, strict=True):
            if answer is None:
                self._turn_to(None)
            elif self._is_taken(one, answer, topic_id, behind_another=bool(left)):
                continue
            left.append(one)
        self._window = left if self._manner.acks < 0 else []

    def _is_taken(
        self, one: UnacknowledgedBatch, answer: ProduceResponse, topic_id: Id | None, *, behind_another: bool
    ) -> bool:
        said = answer.topics[0].partitions[0]
        if said.error_code != 0:
            self._refused(Error(said.error_code), behind_another)
            hosts = {node.node_id: node.host for node in answer.node_endpoints}
            self._turn_to(hosts.get(said.current_leader.leader_id))
            return False
        self._known = True
        if self._manner.acks < 0:
            assert topic_id is not None
            self._claims.acknowledged(TopicPartition(topic_id, self._partition), said.base_offset, one.crc, self.name)
            self.acknowledged += 1
        else:
            self.hurried += 1
        return True

    def _turn_to(self, leader: str | None) -> None:
        if self.stopping or not self._loyal or self._rng.random() > LOYALTY:
            self._leader = leader

    def _refused(self, error: Error, behind_another: bool) -> None:
        self.refused += 1
        if error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and behind_another:
            return
        if not error.retriable:
            raise InvariantViolated(Invariant.NOTHING_LOST, f"{self.name}: a batch is refused for good: {error.name}")
