"""ListTransactions: the transactions that this broker coordinates; whoever wants all asks every broker."""

from collections.abc import Callable

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.time_slices import TimeSlice
from tailrace.groups.consumer.expressions import compiled
from tailrace.model.faults import Fault
from tailrace.transactions.states import State
from tailrace.transactions.transaction import NOTHING, Transaction
from tailrace.transactions.transactions import Transactions
from tailrace.wire.faults import error_of
from tailrace.wire.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

Filter = Callable[[Transaction], bool]


async def list_transactions(request: ListTransactionsRequest, call: Call) -> ListTransactionsResponse:
    names = {state.value: state for state in State}
    unknown = tuple(one for one in request.state_filters if one not in names)
    found: list[ListedTransaction] = []
    try:
        wanted = _filter(request, {names[one]: None for one in request.state_filters if one in names}, call)
        matches = compiled(pattern).fullmatch if (pattern := request.transactional_id_pattern) else None
        for coordinator in call.node.transaction_coordinator.local_coordinators:
            some = await coordinator.ask(lambda machine: _listed(machine, wanted))
            found += some if matches is None else await _matching(some, matches, call.connection.turn)
    except Fault as fault:
        return ListTransactionsResponse(error_code=error_of(fault))
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=tuple(found))


def _filter(request: ListTransactionsRequest, states: dict[State, None], call: Call) -> Filter:
    """Whether a transaction is wanted, whatever its id."""
    producer_ids = dict.fromkeys(request.producer_id_filters)
    now_ms = call.node.ports.clock.wall_ms()

    def wanted(one: Transaction) -> bool:
        if request.state_filters and one.state not in states:
            return False
        if producer_ids and one.producer_id not in producer_ids:
            return False
        is_under_way = one.started_ms != NOTHING and now_ms - one.started_ms > request.duration_filter
        return request.duration_filter < 0 or is_under_way

    return wanted


async def _matching(
    listed: list[ListedTransaction], matches: Callable[[str], object], turn: TimeSlice
) -> list[ListedTransaction]:
    """Those whose ids match. That may take long: others have their turn meanwhile."""
    found = []
    turn.begin()
    for one in listed:
        if matches(one.transactional_id) is not None:
            found.append(one)
        if turn.is_over:
            await turn.next()
    return found


def _listed(machine: Transactions, wanted: Filter) -> list[ListedTransaction]:
    return [
        ListedTransaction(
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            transaction_state=one.state.value,
        )
        for one in machine.transactions.values()
        if wanted(one)
    ]
