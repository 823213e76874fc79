"""FindCoordinator: who keeps a group's or a transaction's state. Nobody yet: clients hear so, and may try again."""

from tailrace.doors.kafka.call import Call
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

message = "groups and transactions are not supported yet"
first_with_many = 4


async def find_coordinator(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    error = Error.COORDINATOR_NOT_AVAILABLE
    if call.version < first_with_many:
        return FindCoordinatorResponse(error_code=error, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
            for key in request.coordinator_keys
        )
    )
