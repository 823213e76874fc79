"""Produce: append record batches to partitions this broker leads.

acks=0 is never answered; acks=1 when the leader has appended; acks=all when the high watermark has passed the batch.
Each partition answers for itself; where another broker leads, the answer says who and where (KIP-951). The batch is
stamped and written straight from the receive buffer.

A request in a transaction may have to ask the coordinator first (`broker.verifying`). It waits then with a copy of its
batches, and holds up what its client sends after it: a producer's batches are taken in the order in which they came.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from tailrace.broker.partition import Partition, acks_all
from tailrace.broker.verification import Verification
from tailrace.broker.verifying import Guard
from tailrace.doors.kafka.call import Answer, Call
from tailrace.doors.kafka.hints import endpoints_of, hint_for
from tailrace.log.log import Appended
from tailrace.model.faults import Fault, InvalidAcks, InvalidBatch, TimedOut
from tailrace.model.ids import Id
from tailrace.model.limits import batch_header_bytes
from tailrace.records.header import read_header
from tailrace.wire.alike import Alike, alike
from tailrace.wire.faults import error_of
from tailrace.wire.hot_produce import (
    PartitionAnswer,
    PartitionData,
    ProduceHead,
    TopicData,
    read_produce,
    write_produced,
)
from tailrace.wire.primitives import WireError

first_with_abortable: Final = 11
first_that_adds: Final = 12  # clients of transactions v2 leave it to the partition's leader to add partitions

TopicAnswers = list[tuple[str | Id, list[PartitionAnswer]]]
Guards = Mapping[tuple[str | Id, int], Guard]
no_guards: Final[Guards] = MappingProxyType({})


def produce(call: Call) -> Answer | None:
    if call.version < 3:
        raise WireError(f"Produce version {call.version} carries an old message format; use version 3 or newer")
    head = read_produce(call.frame, call.at, call.version)
    call.connection.alike = alike(call.frame, call.version, call.client_id, head)
    if head.transactional_id is not None:
        return _in_transaction(call, head, head.transactional_id)
    return _serve(call, head, no_guards)


def produce_alike(call: Call, like: Alike, number: int, batch: memoryview) -> Answer | None:
    """As `produce`, of a request that has all but partition and batch in common with the last."""
    try:
        partition = call.node.replicas.find(like.topic, number)
        base, last, _, time_ms = partition.append(batch, like.acks)
    except Fault as fault:
        return _written(call, [(like.topic, [_refused(call, like.topic, number, fault)])], refused=True)
    if like.acks == acks_all and partition.acknowledged <= last:
        answers = [PartitionAnswer(number, 0, base, time_ms, partition.log.start)]
        waiting = Waiting(call, [(like.topic, answers)])
        waiting.add(like.topic, answers, partition, last + 1)
        waiting.begin(like.timeout_ms, refused=False)
        return None
    return like.answer(call.correlation_id, number, base, time_ms, partition.log.start)


def _in_transaction(call: Call, head: ProduceHead, transactional_id: str) -> Answer | None:
    adds, says_abortable = call.version >= first_that_adds, call.version >= first_with_abortable
    verification = Verification(transactional_id, adds=adds, says_abortable=says_abortable)
    guards = _guards(call, head, verification)
    if verification.is_needed:
        call.holds = True
        call.connection.beside(_ask_first(call, _copied(head), verification, guards), "a Produce")
        return None
    try:
        return _serve(call, head, guards)
    finally:
        verification.done()


async def _ask_first(call: Call, head: ProduceHead, verification: Verification, guards: Guards) -> None:
    try:
        await verification.ask(call.node.verifier)
        answer = _serve(call, head, guards)
    finally:
        verification.done()
    if answer is None:
        call.connection.let_go(call)
    else:
        call.reply(answer)


def _guards(call: Call, head: ProduceHead, verification: Verification) -> Guards:
    """A guard for every transactional batch of partitions that are here; the rest is refused later on."""
    guards: dict[tuple[str | Id, int], Guard] = {}
    for topic, partitions in head.topics:
        for number, records in partitions:
            if records is None or len(records) < batch_header_bytes or (topic, number) in guards:
                continue
            header = read_header(records)
            if header.is_transactional:
                with suppress(Fault):
                    partition = call.node.replicas.find(topic, number)
                    if not partition.is_internal:  # else the transaction would take in what refuses its records
                        guards[topic, number] = verification.guard(partition, header)
    return guards


def _copied(head: ProduceHead) -> ProduceHead:
    """The frame is gone when its callback returns."""
    topics = [
        TopicData(
            topic,
            [
                PartitionData(number, None if records is None else memoryview(bytearray(records)))
                for number, records in partitions
            ],
        )
        for topic, partitions in head.topics
    ]
    return head._replace(topics=topics)


def _serve(call: Call, head: ProduceHead, guards: Guards) -> Answer | None:
    topics: TopicAnswers = []
    waiting: Waiting | None = None
    refused = False
    for topic, partitions in head.topics:
        answers: list[PartitionAnswer] = []
        topics.append((topic, answers))
        for data in partitions:
            try:
                partition, appended = _append(call, head, topic, data, guards)
            except Fault as fault:
                answers.append(_refused(call, topic, data.partition, fault))
                refused = True
                continue
            answers.append(
                PartitionAnswer(data.partition, 0, appended.base_offset, appended.append_time_ms, partition.log.start)
            )
            if head.acks == acks_all and partition.acknowledged <= appended.last_offset:
                waiting = waiting or Waiting(call, topics)
                waiting.add(topic, answers, partition, appended.last_offset + 1)
    if head.acks == 0:
        return _unanswered(call, topics)
    if waiting is not None:
        waiting.begin(head.timeout_ms, refused=refused)
        return None
    return _written(call, topics, refused)


def _append(
    call: Call, head: ProduceHead, topic: str | Id, data: PartitionData, guards: Guards
) -> tuple[Partition, Appended]:
    if not -1 <= head.acks <= 1:
        raise InvalidAcks(f"acks={head.acks}: it must be 0, 1 or -1 (all)")
    partition = call.node.replicas.find(topic, data.partition)
    if not data.records:
        raise InvalidBatch("there is no record batch")
    guard = guards.get((topic, data.partition)) if guards else None
    return partition, partition.append(data.records, head.acks, guard)


def _refused(call: Call, topic: str | Id, partition: int, fault: Fault) -> PartitionAnswer:
    leader, epoch = hint_for(call.node, topic, partition, fault)
    return PartitionAnswer(partition, error_of(fault), message=str(fault), leader=leader, leader_epoch=epoch)


def _written(call: Call, topics: TopicAnswers, refused: bool) -> Answer:
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


class Place(NamedTuple):
    """Where an answer that waits stands."""

    topic: str | Id
    answers: list[PartitionAnswer]
    at: int


class Waiting:
    """A request some of whose batches are appended and not yet committed."""

    __slots__ = ("_added", "_call", "_open", "_refused", "_timer", "_topics")

    def __init__(self, call: Call, topics: TopicAnswers) -> None:
        self._call = call
        self._topics = topics
        self._added = 0
        self._open: dict[int, Place] = {}  # which answers wait, by a number of their own
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, topic: str | Id, answers: list[PartitionAnswer], partition: Partition, end: int) -> None:
        number, self._added = self._added, self._added + 1
        self._open[number] = Place(topic, answers, len(answers) - 1)
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

    def _refuse(self, waiting: Place, fault: Fault) -> None:
        topic, answers, at = waiting
        self._refused = True
        answers[at] = _refused(self._call, topic, answers[at].partition, fault)

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._call.reply(_written(self._call, self._topics, self._refused))
