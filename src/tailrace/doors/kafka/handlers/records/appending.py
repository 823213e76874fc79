"""The batches of a Produce, appended one after the other, and the answer to it, which may have to wait."""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from tailrace.broker.partitions.partition import ACKS_ALL, Partition
from tailrace.broker.partitions.transaction_guards import Guard
from tailrace.doors.kafka.call import Answer, Call
from tailrace.doors.kafka.handlers.records.leader_hints import endpoints_of, hint_for
from tailrace.doors.kafka.time_slices import MANY_AT_ONCE
from tailrace.log.log import Appended
from tailrace.model.faults import Fault, InvalidAcks, InvalidBatch, TimedOut
from tailrace.model.ids import Id
from tailrace.wire.faults import error_of
from tailrace.wire.hot_produce import PartitionAnswer, PartitionData, ProduceHead, write_produced

TopicAnswers = list[tuple[str | Id, list[PartitionAnswer]]]
Guards = Mapping[tuple[str | Id, int], Guard]
NO_GUARDS: Final[Guards] = MappingProxyType({})


class Serving:
    """A request whose batches are appended one after the other."""

    __slots__ = ("_call", "_guards", "_head", "_is_slow", "_left", "_refused", "_topics", "_waiting")

    def __init__(self, call: Call, head: ProduceHead, guards: Guards) -> None:
        self._call = call
        self._head = head
        self._guards = guards
        self._topics: TopicAnswers = [(topic, []) for topic, _ in head.topics]
        self._left = deque(
            (topic, answers, data)
            for (topic, answers), (_, partitions) in zip(self._topics, head.topics, strict=True)
            for data in partitions
        )
        self._waiting: PendingProduce | None = None
        self._refused = False
        self._is_slow = len(self._left) > MANY_AT_ONCE  # or may be

    def go_on(self) -> bool:
        """Append: all that is left, or as much as this client may in one turn. Whether that was all."""
        turn, left = self._call.connection.turn, self._left
        while left:
            self._take(*left.popleft())
            if self._is_slow and left and turn.is_over:
                return False
        turn.is_slow = turn.is_slow or self._is_slow
        return True

    def keep(self) -> None:
        """Be independent of the frame, which is gone when its callback returns."""
        self._left = deque((topic, answers, _copied(data)) for topic, answers, data in self._left)
        self._head = self._head._replace(topics=[])

    def answer(self) -> Answer | None:
        """None: some of it has to wait, and whoever waits gives the answer."""
        if self._head.acks == 0:
            return _unanswered(self._call, self._topics)
        if self._waiting is not None:
            self._waiting.begin(self._head.timeout_ms, refused=self._refused)
            return None
        return written(self._call, self._topics, self._refused)

    def _take(self, topic: str | Id, answers: list[PartitionAnswer], data: PartitionData) -> None:
        try:
            partition, appended = self._append(topic, data)
        except Fault as fault:
            answers.append(refused_answer(self._call, topic, data.partition, fault))
            self._refused = True
            return
        answers.append(
            PartitionAnswer(data.partition, 0, appended.base_offset, appended.append_time_ms, partition.log.start)
        )
        if self._head.acks == ACKS_ALL and partition.acknowledged <= appended.last_offset:
            self._waiting = self._waiting or PendingProduce(self._call, self._topics)
            self._waiting.add(topic, answers, partition, appended.last_offset + 1)

    def _append(self, topic: str | Id, data: PartitionData) -> tuple[Partition, Appended]:
        if not -1 <= self._head.acks <= 1:
            raise InvalidAcks(f"acks={self._head.acks}: it must be 0, 1 or -1 (all)")
        partition = self._call.node.hosted.find(topic, data.partition)
        if not data.records:
            raise InvalidBatch("there is no record batch")
        self._is_slow = self._is_slow or partition.log.looks_at_records
        guard = self._guards.get((topic, data.partition)) if self._guards else None
        return partition, partition.append(data.records, self._head.acks, guard)


def _copied(data: PartitionData) -> PartitionData:
    number, records = data
    return PartitionData(number, None if records is None else memoryview(bytearray(records)))


def refused_answer(call: Call, topic: str | Id, partition: int, fault: Fault) -> PartitionAnswer:
    leader, epoch = hint_for(call.node, topic, partition, fault)
    return PartitionAnswer(partition, error_of(fault), message=str(fault), leader=leader, leader_epoch=epoch)


def written(call: Call, topics: TopicAnswers, refused: bool) -> Answer:
    """An answer; a refusal may name leaders, and then the answer says how to reach them."""
    if not refused:
        return write_produced(call.correlation_id, call.version, topics)
    leaders = (answer.leader for _, answers in topics for answer in answers)
    return write_produced(call.correlation_id, call.version, topics, endpoints_of(call.node, leaders))


def _unanswered(call: Call, topics: TopicAnswers) -> bytes:
    """A client that wants no answer learns of a failure only by losing its connection, as with Kafka."""
    for topic, answers in topics:
        for answer in answers:
            if answer.error:
                call.connection.close(f"produce with acks=0 to {topic!r}, {answer.partition}: {answer.message}")
    return b""


class BatchPlace(NamedTuple):
    """Where an answer that waits stands."""

    topic: str | Id
    answers: list[PartitionAnswer]
    at: int


class PendingProduce:
    """A request some of whose batches are appended and not yet committed."""

    __slots__ = ("_added", "_call", "_open", "_refused", "_timer", "_topics")

    def __init__(self, call: Call, topics: TopicAnswers) -> None:
        self._call = call
        self._topics = topics
        self._added = 0
        self._open: dict[int, BatchPlace] = {}  # which answers wait, by a number of their own
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, topic: str | Id, answers: list[PartitionAnswer], partition: Partition, end: int) -> None:
        number, self._added = self._added, self._added + 1
        self._open[number] = BatchPlace(topic, answers, len(answers) - 1)
        partition.when_acknowledged(end, partial(self._decided, number))

    def begin(self, timeout_ms: int, *, refused: bool) -> None:
        self._refused |= refused
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, self._timed_out)
        if not self._open:
            self._answer()

    def _decided(self, number: int, fault: Fault | None) -> None:
        waiting = self._open.pop(number, None)
        if waiting is None:
            return
        if fault is not None:
            self._refuse(waiting, fault)
        if not self._open and self._timer is not None:  # all that has to wait is here
            self._answer()

    def _timed_out(self) -> None:
        fault = TimedOut("the batch is appended, but not committed within the request's timeout")
        for waiting in self._open.values():
            self._refuse(waiting, fault)
        self._open.clear()
        self._answer()

    def _refuse(self, waiting: BatchPlace, fault: Fault) -> None:
        topic, answers, at = waiting
        self._refused = True
        answers[at] = refused_answer(self._call, topic, answers[at].partition, fault)

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._call.reply(written(self._call, self._topics, self._refused))
