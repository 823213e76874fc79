"""ListTransactions: the transactions that this broker coordinates. Clients send it to every broker to list all."""

from tailrace.broker.services.transactions import TransactionFilter
from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault
from tailrace.transactions.states import State
from tailrace.wire.faults import error_of
from tailrace.wire.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)


async def list_transactions(request: ListTransactionsRequest, call: Call) -> ListTransactionsResponse:
    names = {state.value: state for state in State}
    states = {names[one]: None for one in request.state_filters if one in names}
    wanted = TransactionFilter(
        states=states if request.state_filters else None,
        producer_ids=dict.fromkeys(request.producer_id_filters),
        running_longer_than_ms=request.duration_filter,
        id_pattern=request.transactional_id_pattern,
    )
    try:
        found = await call.services.transactions.list(call.caller, wanted, call.client.time_slice)
    except Fault as fault:
        return ListTransactionsResponse(error_code=error_of(fault))
    return ListTransactionsResponse(
        unknown_state_filters=tuple(one for one in request.state_filters if one not in names),
        transaction_states=tuple(
            ListedTransaction(
                transactional_id=one.transactional_id, producer_id=one.producer_id, transaction_state=one.state
            )
            for one in found
        ),
    )
