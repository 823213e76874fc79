"""InitProducerId: a producer id for idempotence. Ids never repeat; transactions come with their coordinator.

A producer that already has an id and an epoch (KIP-360) gets a new id, too, as with Kafka: without a transactional id
there is nothing that would tell its batches from another's.
"""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.faults import error_of
from tailrace.model.faults import Fault, InvalidRequest, UnsupportedVersion
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

nothing: Final = -1


async def init_producer_id(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    try:
        _check(request)
        return InitProducerIdResponse(producer_id=await call.node.producer_ids.take())
    except Fault as fault:
        return InitProducerIdResponse(error_code=error_of(fault), producer_id=nothing, producer_epoch=nothing)


def _check(request: InitProducerIdRequest) -> None:
    if (request.producer_id == nothing) != (request.producer_epoch == nothing):
        raise InvalidRequest("a producer gives both its id and its epoch, or neither")
    if request.transactional_id == "":
        raise InvalidRequest("a transactional id cannot be empty")
    if request.transactional_id is not None:
        raise UnsupportedVersion("transactions are not supported yet")  # final: a client that may retry would hang
