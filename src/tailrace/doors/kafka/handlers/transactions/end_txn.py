"""EndTxn: commit or abort a transaction.

The response is sent when the decision is committed; the transaction markers are written afterwards. From version 5 on
(transactions v2, KIP-890), it has the producer id and epoch of the next transaction.
"""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.older_errors import error_for
from tailrace.model.faults import Fault
from tailrace.transactions.transaction import Producer
from tailrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_OF_V2: Final = 5


async def end_txn(request: EndTxnRequest, call: Call) -> EndTxnResponse:
    producer = Producer(request.producer_id, request.producer_epoch)
    version = 2 if call.version >= FIRST_OF_V2 else 1
    try:
        following = await call.services.transactions.end(
            call.caller,
            request.transactional_id,
            producer,
            version,
            committed=request.committed,
            connection_number=call.client.connection_number,
        )
    except Fault as fault:
        return EndTxnResponse(error_code=error_for(fault, call, fenced_since=2, abortable_since=4))
    return EndTxnResponse(producer_id=following.id, producer_epoch=following.epoch)
