"""Faults of transactions in the error codes that older clients know."""

from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault, NotInTransaction, ProducerFenced
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of


def error_for(fault: Fault, call: Call, *, fenced_since: int, abortable_since: int) -> Error:
    """Kafka's error code in the versions that know it, else what it was before."""
    if isinstance(fault, ProducerFenced) and call.version < fenced_since:
        return Error.INVALID_PRODUCER_EPOCH
    if isinstance(fault, NotInTransaction) and call.version < abortable_since:
        return Error.INVALID_TXN_STATE
    return error_of(fault)
