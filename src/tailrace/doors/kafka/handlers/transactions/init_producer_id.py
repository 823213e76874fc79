"""InitProducerId: get a producer id. Ids never repeat.

Without a transactional id, any broker gives a new id to an idempotent producer; also if the producer has an id and an
epoch already (KIP-360), as in Kafka. With a transactional id, its coordinator returns the id and an epoch that fences
the previous producer of that transactional id.
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
        raise InvalidRequest("producer id and producer epoch must both be set, or neither")
    if request.transactional_id is None:
        return await call.services.transactions.new_producer(call.caller)
    current = Producer(request.producer_id, request.producer_epoch)
    expected = None if current.id == NOTHING else current
    name, timeout_ms = request.transactional_id, request.transaction_timeout_ms
    return await call.services.transactions.init_producer(call.caller, name, timeout_ms, expected)
