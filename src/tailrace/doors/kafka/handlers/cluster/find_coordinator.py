"""FindCoordinator: the broker that coordinates a group or a transactional id, or has the state of a share partition."""

from functools import partial
from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import each, once
from tailrace.model.faults import CoordinatorUnavailable, Fault, InvalidRequest
from tailrace.model.ids import NO_BROKER, BrokerId
from tailrace.wire.faults import error_of
from tailrace.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

NO_PORT: Final = -1
FIRST_WITH_MANY: Final = 4
GROUPS: Final = 0
TRANSACTIONS: Final = 1
SHARE_PARTITIONS: Final = 2
FIRST_WITH: Final = {GROUPS: 0, TRANSACTIONS: 1, SHARE_PARTITIONS: 6}


async def find_coordinator(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    if call.version >= FIRST_WITH_MANY:
        found = await each(once(request.coordinator_keys), partial(_find, call, request.key_type))
        return FindCoordinatorResponse(coordinators=tuple(found))
    one = await _find(call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


async def _find(call: Call, key_type: int, key: str) -> Coordinator:
    try:
        if key_type not in FIRST_WITH or call.version < FIRST_WITH[key_type]:
            raise InvalidRequest(f"FindCoordinator version {call.version} does not support key type {key_type}")
        broker = await _broker(call, key_type, key)
        known = call.services.admin.find_broker(broker)
        if known is None or not known.kafka_port:
            raise CoordinatorUnavailable(
                f"broker {broker}, the coordinator of {key}, has not registered an endpoint yet"
            )
    except Fault as fault:
        return Coordinator(
            key=key, node_id=NO_BROKER, host="", port=NO_PORT, error_code=error_of(fault), error_message=str(fault)
        )
    return Coordinator(key=key, node_id=known.id, host=known.host, port=known.kafka_port)


async def _broker(call: Call, key_type: int, key: str) -> BrokerId:
    if key_type == GROUPS:
        return await call.services.groups.find_coordinator(call.caller, key)
    if key_type == TRANSACTIONS:
        return await call.services.transactions.find_coordinator(call.caller, key)
    return await call.services.queues.find_coordinator(call.caller, key)
