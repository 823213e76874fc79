"""What handlers of transactions share: who coordinates one here, and faults in the words that older clients know."""

from tailrace.broker.transactions.partition_coordinator import TransactionPartitionCoordinator
from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault, InvalidRequest, NotInTransaction, ProducerFenced
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of


def coordinator_of(call: Call, transactional_id: str) -> TransactionPartitionCoordinator:
    require_name(transactional_id)
    return call.node.transaction_coordinator.local(transactional_id)


def require_name(transactional_id: str) -> None:
    if not transactional_id:
        raise InvalidRequest("a transactional id cannot be empty")


def error_for(fault: Fault, call: Call, *, fenced_since: int, abortable_since: int) -> Error:
    """Kafka's error code in the versions that know it, else what it was before."""
    if isinstance(fault, ProducerFenced) and call.version < fenced_since:
        return Error.INVALID_PRODUCER_EPOCH
    if isinstance(fault, NotInTransaction) and call.version < abortable_since:
        return Error.INVALID_TXN_STATE
    return error_of(fault)
