"""EndTxn: commit or abort a transaction. Answered when that is decided and cannot be lost; its markers follow.

From version 5 on the producer is told the epoch of its next transaction (KIP-890)."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.older_errors import error_for
from tailrace.model.faults import Fault
from tailrace.transactions.transaction import Producer
from tailrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_OF_V2: Final = 5


async def end_txn(request: EndTxnRequest, call: Call) -> EndTxnResponse:
    who = Producer(request.producer_id, request.producer_epoch)
    version = 2 if call.version >= FIRST_OF_V2 else 1
    try:
        told = await call.services.transactions.end(
            call.caller,
            request.transactional_id,
            who,
            version,
            committed=request.committed,
            connection_number=call.client.connection_number,
        )
    except Fault as fault:
        return EndTxnResponse(error_code=error_for(fault, call, fenced_since=2, abortable_since=4))
    return EndTxnResponse(producer_id=told.id, producer_epoch=told.epoch)
