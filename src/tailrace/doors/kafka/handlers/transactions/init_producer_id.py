"""InitProducerId: a producer id for idempotence; with a transactional id, from its coordinator, in an epoch that fences
whoever had the name before. Ids never repeat.

A producer that already has an id and an epoch (KIP-360) and no transactional id gets a new id, as with Kafka: there is
nothing that would tell its batches from another's.
"""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.older_errors import error_for
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.transactions.transaction import Producer
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NOTHING: Final = -1


async def init_producer_id(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    try:
        producer = await _producer(request, call)
    except Fault as fault:
        error = error_for(fault, call, fenced_since=4, abortable_since=5)
        return InitProducerIdResponse(error_code=error, producer_id=NOTHING, producer_epoch=NOTHING)
    return InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)


async def _producer(request: InitProducerIdRequest, call: Call) -> Producer:
    if (request.producer_id == NOTHING) != (request.producer_epoch == NOTHING):
        raise InvalidRequest("a producer gives both its id and its epoch, or neither")
    if request.transactional_id is None:
        return await call.services.transactions.new_producer(call.caller)
    said = Producer(request.producer_id, request.producer_epoch)
    expected = None if said.id == NOTHING else said
    name, timeout_ms = request.transactional_id, request.transaction_timeout_ms
    return await call.services.transactions.init_producer(call.caller, name, timeout_ms, expected)
