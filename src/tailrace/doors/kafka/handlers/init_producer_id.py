"""InitProducerId: a producer id for idempotence. Ids never repeat; transactions come with their coordinator."""

from tailrace.doors.kafka.call import Call
from tailrace.wire.errors import Error
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def init_producer_id(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=Error.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=await call.node.producer_ids.take())
