"""FindCoordinator: who keeps a group's or a transaction's state. Nobody yet: clients hear so, and may try again."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.faults import error_of
from tailrace.model.faults import CoordinatorUnavailable, Fault, InvalidRequest
from tailrace.model.ids import nobody
from tailrace.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

no_port: Final = -1
first_with_many: Final = 4
first_with: Final = {0: 0, 1: 1, 2: 6}  # groups, transactions, share groups


async def find_coordinator(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    fault: Fault = CoordinatorUnavailable("groups and transactions are not supported yet")
    if request.key_type not in first_with or call.version < first_with[request.key_type]:
        fault = InvalidRequest(f"FindCoordinator version {call.version} knows no key type {request.key_type}")
    error, message = error_of(fault), str(fault)
    call.connection.door.warn_once(
        f"client {call.client_id!r} asks for a coordinator, and will go on asking: {message}; "
        "let it read by assignment, and commit no offsets"
    )
    if call.version < first_with_many:
        return FindCoordinatorResponse(error_code=error, error_message=message, node_id=nobody, port=no_port)
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=key, node_id=nobody, host="", port=no_port, error_code=error, error_message=message)
            for key in request.coordinator_keys
        )
    )
