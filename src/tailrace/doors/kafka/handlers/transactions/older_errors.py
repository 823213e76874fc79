"""Error codes of transaction faults, by API version: older versions lack PRODUCER_FENCED and TRANSACTION_ABORTABLE."""

from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault, NotInTransaction, ProducerFenced
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of


def error_for(fault: Fault, call: Call, *, fenced_since: int, abortable_since: int) -> Error:
    """The error code of a fault, or the code that stood for it before the API version had its own."""
    if isinstance(fault, ProducerFenced) and call.version < fenced_since:
        return Error.INVALID_PRODUCER_EPOCH
    if isinstance(fault, NotInTransaction) and call.version < abortable_since:
        return Error.INVALID_TXN_STATE
    return error_of(fault)
