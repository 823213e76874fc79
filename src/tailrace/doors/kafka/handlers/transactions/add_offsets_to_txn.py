"""AddOffsetsToTxn: add the `__consumer_offsets` partition of a group to a transaction that will commit its offsets."""

from tailrace.broker.services.transactions import Producer
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.older_errors import error_for
from tailrace.model.faults import Fault
from tailrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, call: Call) -> AddOffsetsToTxnResponse:
    producer = Producer(request.producer_id, request.producer_epoch)
    try:
        await call.services.transactions.add_offsets(
            call.caller, request.transactional_id, producer, request.group_id, call.client.connection_number
        )
    except Fault as fault:
        return AddOffsetsToTxnResponse(error_code=error_for(fault, call, fenced_since=2, abortable_since=4))
    return AddOffsetsToTxnResponse()
