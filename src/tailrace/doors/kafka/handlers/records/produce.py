"""Produce: append record batches to partitions this broker leads.

acks=0 is never answered; acks=1 when the leader has appended; acks=all when the high watermark has passed the batch.
Each partition answers for itself; where another broker leads, the answer says who and where (KIP-951). The batch is
stamped and written straight from the receive buffer.

A request in a transaction may have to ask the coordinator first (`broker.verifying`). It waits then with a copy of its
batches, and holds up what its client sends after it: a producer's batches are taken in the order in which they came.
So does a request that takes the loop for long, as batches do that have to be opened: see `turns`.
"""

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from tailrace.broker.partitions.partition import ACKS_ALL
from tailrace.broker.partitions.transaction_guards import Guard
from tailrace.broker.transactions.verification import Verification
from tailrace.doors.kafka.call import Answer, Call
from tailrace.doors.kafka.handlers.records.appending import (
    NO_GUARDS,
    Guards,
    PendingProduce,
    Serving,
    refused_answer,
    written,
)
from tailrace.model.faults import Fault
from tailrace.model.ids import Id
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.records.header import read_header
from tailrace.wire.hot_produce import PartitionAnswer, ProduceHead, read_produce
from tailrace.wire.primitives import WireError
from tailrace.wire.produce_templates import ProduceTemplate, produce_template

FIRST_WITH_ABORTABLE: Final = 11
FIRST_THAT_ADDS: Final = 12  # clients of transactions v2 leave it to the partition's leader to add partitions


def produce(call: Call) -> Answer | None:
    if call.version < 3:
        raise WireError(f"Produce version {call.version} carries an old message format; use version 3 or newer")
    head = read_produce(call.frame, call.at, call.version)
    call.connection.alike = produce_template(call.frame, call.version, call.client_id, head)
    if head.transactional_id is not None:
        return _in_transaction(call, head, head.transactional_id)
    serving = Serving(call, head, NO_GUARDS)
    if serving.go_on():
        return serving.answer()
    _later(call, serving, _in_turns(call, serving))
    return None


def produce_alike(call: Call, like: ProduceTemplate, number: int, batch: memoryview) -> Answer | None:
    """As `produce`, of a request that has all but partition and batch in common with the last."""
    try:
        partition = call.node.hosted.find(like.topic, number)
        if partition.log.looks_at_records:
            call.connection.turn.is_slow = True
        base, last, _, time_ms = partition.append(batch, like.acks)
    except Fault as fault:
        return written(call, [(like.topic, [refused_answer(call, like.topic, number, fault)])], refused=True)
    if like.acks == ACKS_ALL and partition.acknowledged <= last:
        answers = [PartitionAnswer(number, 0, base, time_ms, partition.log.start)]
        waiting = PendingProduce(call, [(like.topic, answers)])
        waiting.add(like.topic, answers, partition, last + 1)
        waiting.begin(like.timeout_ms, refused=False)
        return None
    return like.answer(call.correlation_id, number, base, time_ms, partition.log.start)


def _in_transaction(call: Call, head: ProduceHead, transactional_id: str) -> Answer | None:
    adds, says_abortable = call.version >= FIRST_THAT_ADDS, call.version >= FIRST_WITH_ABORTABLE
    verification = Verification(transactional_id, adds=adds, says_abortable=says_abortable)
    guards = _guards(call, head, verification)
    serving = Serving(call, head, guards)
    has_to_wait = verification.is_needed
    try:
        has_to_wait = has_to_wait or not serving.go_on()
    finally:
        if not has_to_wait:
            verification.done()
    if has_to_wait:
        _later(call, serving, _ask_first(call, serving, verification))
        return None
    return serving.answer()


def _later(call: Call, serving: Serving, work: Coroutine[Any, Any, None]) -> None:
    serving.keep()
    call.holds = True
    call.connection.beside(work, "a Produce")


async def _ask_first(call: Call, serving: Serving, verification: Verification) -> None:
    try:
        if verification.is_needed:
            await verification.ask(call.node.verifier)
        await _to_its_end(call, serving)
    finally:
        verification.done()
    _give(call, serving.answer())


async def _in_turns(call: Call, serving: Serving) -> None:
    await _to_its_end(call, serving)
    _give(call, serving.answer())


async def _to_its_end(call: Call, serving: Serving) -> None:
    while not serving.go_on():
        await call.connection.turn.next()


def _give(call: Call, answer: Answer | None) -> None:
    if answer is None:
        call.connection.let_go(call)
    else:
        call.reply(answer)


def _guards(call: Call, head: ProduceHead, verification: Verification) -> Guards:
    """A guard for every transactional batch of partitions that are here; the rest is refused later on."""
    guards: dict[tuple[str | Id, int], Guard] = {}
    for topic, partitions in head.topics:
        for number, records in partitions:
            if records is None or len(records) < BATCH_HEADER_BYTES or (topic, number) in guards:
                continue
            header = read_header(records)
            if header.is_transactional:
                with suppress(Fault):
                    partition = call.node.hosted.find(topic, number)
                    if not partition.is_internal:  # else the transaction would take in what refuses its records
                        guards[topic, number] = verification.guard(partition, header)
    return guards
