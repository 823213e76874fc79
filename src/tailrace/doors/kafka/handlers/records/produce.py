"""Produce: append record batches to partitions that this broker leads.

With acks=0 there is no response; with acks=1 the response is sent when the leader has appended the batch, with acks=all
when the high watermark has passed it. Each partition has its own result; if another broker is the leader, the response
names it and its endpoint (KIP-951); if single records are the reason why a batch is rejected, it names them (KIP-467).
The batch is stamped and written straight from the receive buffer.

A request in a transaction may have to be verified by the transaction coordinator first (KIP-890). It waits with a copy
of its batches, and blocks later requests of its connection: the batches of a producer are appended in the order in
which they arrived. A request that takes more than one time slice does the same, and one with a batch that has to be
compressed anew because its topic stores another codec.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from tailrace.broker.services.writer import ACKS_ALL, Acknowledgements, Appended, NeedsRecompression, Outcome, Write
from tailrace.doors.kafka.call import Answer, WireCall
from tailrace.doors.kafka.handlers.records.leader_endpoints import endpoints_of
from tailrace.model.faults import Fault, InvalidBatch, InvalidTimestamp
from tailrace.model.ids import Id
from tailrace.wire.faults import error_of
from tailrace.wire.hot_produce import PartitionAnswer, ProduceHead, read_produce, write_produced
from tailrace.wire.primitives import WireError
from tailrace.wire.produce_templates import ProduceTemplate, produce_template

FIRST_WITH_ABORTABLE: Final = 11
FIRST_THAT_ADDS: Final = 12  # transactions v2: the partition's leader adds the partition to the transaction

Layout = Sequence[tuple[str | Id, Sequence[int]]]  # the topics and partitions of a request, in its order


def produce(call: WireCall) -> Answer | None:
    if call.version < 3:
        raise WireError(
            f"Produce version {call.version} has an old message format, only versions from 3 on are supported"
        )
    head = read_produce(call.frame, call.at, call.version)
    call.connection.alike = produce_template(call.frame, call.version, call.caller.client_id, head)
    write = _write(call, head)
    layout = [(topic, [number for number, _ in partitions]) for topic, partitions in head.topics]
    if write.append_some():
        return _answer(call, write, layout, head.acks, head.timeout_ms)
    _finish_in_task(call, write, layout, head.acks, head.timeout_ms)
    return None


def produce_like_last(call: WireCall, like: ProduceTemplate, number: int, batch: memoryview) -> Answer | None:
    """As `produce`, for a request that differs from the previous one in partition and batch only."""
    try:
        partition = call.services.writer.partition(call.caller, like.topic, number)
        if partition.opens_records:
            call.connection.time_slice.is_slow = True
        appended = partition.append(batch, like.acks)
    except NeedsRecompression:
        write = call.services.writer.write(
            call.caller, [(like.topic, number, batch)], like.acks, call.connection.time_slice
        )
        _finish_in_task(call, write, [(like.topic, [number])], like.acks, like.timeout_ms)
        return None
    except Fault as fault:
        call.connection.time_slice.is_slow = True  # the batch may have been opened, to name the rejected records
        return _written(call, [(like.topic, [number])], [fault])
    if like.acks == ACKS_ALL and partition.acknowledged <= appended.last_offset:
        outcomes: list[Outcome] = [appended]
        acknowledgements = Acknowledgements(outcomes)
        acknowledgements.add(0, partition, appended.last_offset + 1)
        acknowledgements.begin(like.timeout_ms, partial(_reply, call, [(like.topic, [number])], outcomes))
        return None
    return like.answer(call.correlation_id, number, appended.base_offset, appended.append_time_ms, appended.log_start)


def _write(call: WireCall, head: ProduceHead) -> Write:
    writer, time_slice = call.services.writer, call.connection.time_slice
    batches = [(topic, number, records) for topic, partitions in head.topics for number, records in partitions]
    if head.transactional_id is None:
        return writer.write(call.caller, batches, head.acks, time_slice)
    return writer.write_in_transaction(
        call.caller,
        head.transactional_id,
        batches,
        head.acks,
        time_slice,
        adds=call.version >= FIRST_THAT_ADDS,
        knows_abortable=call.version >= FIRST_WITH_ABORTABLE,
    )


def _finish_in_task(call: WireCall, write: Write, layout: Layout, acks: int, timeout_ms: int) -> None:
    write.copy_batches()
    call.holds = True
    call.connection.run_in_task(_finish(call, write, layout, acks, timeout_ms), "a Produce")


async def _finish(call: WireCall, write: Write, layout: Layout, acks: int, timeout_ms: int) -> None:
    await write.to_its_end()
    answer = _answer(call, write, layout, acks, timeout_ms)
    if answer is None:
        call.connection.stop_holding(call)
    else:
        call.reply(answer)


def _answer(call: WireCall, write: Write, layout: Layout, acks: int, timeout_ms: int) -> Answer | None:
    """The response; None: not everything is committed yet, and the response is sent when it is."""
    if acks == 0:
        _close_if_refused(call, layout, write.outcomes)
        return b""
    if write.finish(timeout_ms, partial(_reply, call, layout, write.outcomes)):
        return _written(call, layout, write.outcomes)
    return None


def _reply(call: WireCall, layout: Layout, outcomes: Sequence[Outcome]) -> None:
    call.reply(_written(call, layout, outcomes))


def _written(call: WireCall, layout: Layout, outcomes: Sequence[Outcome]) -> Answer:
    """The encoded response; if refusals name leaders, it has their endpoints."""
    left = iter(outcomes)
    topics = [
        (topic, [_partition_answer(call, topic, number, next(left)) for number in numbers]) for topic, numbers in layout
    ]
    if all(isinstance(one, Appended) for one in outcomes):
        return write_produced(call.correlation_id, call.version, topics)
    leaders = (answer.leader for _, answers in topics for answer in answers)
    return write_produced(call.correlation_id, call.version, topics, endpoints_of(call, leaders))


def _partition_answer(call: WireCall, topic: str | Id, number: int, outcome: Outcome) -> PartitionAnswer:
    if isinstance(outcome, Appended):
        return PartitionAnswer(number, 0, outcome.base_offset, outcome.append_time_ms, outcome.log_start)
    leader, epoch = call.services.topics.leader_hint(topic, number, outcome)
    return PartitionAnswer(
        number,
        error_of(outcome),
        message=str(outcome),
        leader=leader,
        leader_epoch=epoch,
        record_errors=outcome.records if isinstance(outcome, InvalidBatch | InvalidTimestamp) else (),
    )


def _close_if_refused(call: WireCall, layout: Layout, outcomes: Sequence[Outcome]) -> None:
    """With acks=0 there is no response to carry an error: close the connection instead, as Kafka does."""
    left = iter(outcomes)
    for topic, numbers in layout:
        for number in numbers:
            if isinstance(outcome := next(left), Fault):
                call.connection.close(f"Produce with acks=0 to topic {topic!r}, partition {number} failed: {outcome}")
