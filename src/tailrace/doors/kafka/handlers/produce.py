"""Produce: append record batches to partitions this broker leads.

acks=0 is never answered; acks=1 when the leader has appended; acks=all when the high watermark has passed the batch.
Each partition answers for itself; where another broker leads, the answer says who and where (KIP-951). The batch is
stamped and written straight from the receive buffer.

A request in a transaction may have to ask the coordinator first (`broker.verifying`). It waits then with a copy of its
batches, and holds up what its client sends after it: a producer's batches are taken in the order in which they came.
So does a request with several batches that have to be opened (`log.admission`): each takes the loop long enough, so
other clients have their turn between two of them.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from tailrace.broker.partition import acks_all
from tailrace.broker.verification import Verification
from tailrace.broker.verifying import Guard
from tailrace.doors.kafka.appending import Guards, Serving, Waiting, no_guards, refused_answer, written
from tailrace.doors.kafka.call import Answer, Call
from tailrace.model.faults import Fault
from tailrace.model.ids import Id
from tailrace.model.limits import batch_header_bytes
from tailrace.records.header import read_header
from tailrace.wire.alike import Alike, alike
from tailrace.wire.hot_produce import PartitionAnswer, PartitionData, ProduceHead, TopicData, read_produce
from tailrace.wire.primitives import WireError

first_with_abortable: Final = 11
first_that_adds: Final = 12  # clients of transactions v2 leave it to the partition's leader to add partitions


def produce(call: Call) -> Answer | None:
    if call.version < 3:
        raise WireError(f"Produce version {call.version} carries an old message format; use version 3 or newer")
    head = read_produce(call.frame, call.at, call.version)
    call.connection.alike = alike(call.frame, call.version, call.client_id, head)
    if head.transactional_id is not None:
        return _in_transaction(call, head, head.transactional_id)
    if _opens_several(call, head):
        _later(call, _in_turns(call, _copied(head)))
        return None
    return _serve(call, head, no_guards)


def produce_alike(call: Call, like: Alike, number: int, batch: memoryview) -> Answer | None:
    """As `produce`, of a request that has all but partition and batch in common with the last."""
    try:
        partition = call.node.replicas.find(like.topic, number)
        base, last, _, time_ms = partition.append(batch, like.acks)
    except Fault as fault:
        return written(call, [(like.topic, [refused_answer(call, like.topic, number, fault)])], refused=True)
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
    if verification.is_needed or _opens_several(call, head):
        _later(call, _ask_first(call, _copied(head), verification, guards))
        return None
    try:
        return _serve(call, head, guards)
    finally:
        verification.done()


def _later(call: Call, work: Coroutine[Any, Any, None]) -> None:
    call.holds = True
    call.connection.beside(work, "a Produce")


async def _ask_first(call: Call, head: ProduceHead, verification: Verification, guards: Guards) -> None:
    try:
        if verification.is_needed:
            await verification.ask(call.node.verifier)
        answer = await _served(call, head, guards)
    finally:
        verification.done()
    _give(call, answer)


async def _in_turns(call: Call, head: ProduceHead) -> None:
    _give(call, await _served(call, head, no_guards))


def _give(call: Call, answer: Answer | None) -> None:
    if answer is None:
        call.connection.let_go(call)
    else:
        call.reply(answer)


async def _served(call: Call, head: ProduceHead, guards: Guards) -> Answer | None:
    """As `_serve`; others have their turn after each batch, if several have to be opened."""
    if not _opens_several(call, head):
        return _serve(call, head, guards)
    serving = Serving(call, head, guards)
    for _ in serving.steps():
        await asyncio.sleep(0)
    return serving.answer()


def _serve(call: Call, head: ProduceHead, guards: Guards) -> Answer | None:
    serving = Serving(call, head, guards)
    for _ in serving.steps():
        pass
    return serving.answer()


def _opens_several(call: Call, head: ProduceHead) -> bool:
    opened = 0
    for topic, partitions in head.topics:
        for number, _ in partitions:
            with suppress(Fault):
                opened += call.node.replicas.find(topic, number).log.looks_at_records
    return opened > 1


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
