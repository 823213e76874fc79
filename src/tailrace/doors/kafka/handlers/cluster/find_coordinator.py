"""FindCoordinator: who keeps the state of a group or of a transactional id. Nobody keeps share groups yet: clients hear
so, and may try again."""

from functools import partial
from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.transactional_ids import require_name
from tailrace.doors.kafka.request_limits import each, once
from tailrace.model.faults import CoordinatorUnavailable, Fault, InvalidRequest
from tailrace.model.ids import BrokerId, nobody
from tailrace.wire.faults import error_of
from tailrace.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

no_port: Final = -1
first_with_many: Final = 4
groups: Final = 0
transactions: Final = 1
share_groups: Final = 2
first_with: Final = {groups: 0, transactions: 1, share_groups: 6}


async def find_coordinator(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    if call.version >= first_with_many:
        found = await each(once(request.coordinator_keys), partial(_find, call, request.key_type))
        return FindCoordinatorResponse(coordinators=tuple(found))
    one = await _find(call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


async def _find(call: Call, key_type: int, key: str) -> Coordinator:
    try:
        if key_type not in first_with or call.version < first_with[key_type]:
            raise InvalidRequest(f"FindCoordinator version {call.version} knows no key type {key_type}")
        broker = await _broker(call, key_type, key)
        known = call.node.hosted.image.brokers.get(broker)
        if known is None or not known.kafka_port:
            raise CoordinatorUnavailable(f"broker {broker} coordinates {key}, and has not said where it is")
    except Fault as fault:
        return Coordinator(
            key=key, node_id=nobody, host="", port=no_port, error_code=error_of(fault), error_message=str(fault)
        )
    return Coordinator(key=key, node_id=known.id, host=known.host, port=known.kafka_port)


async def _broker(call: Call, key_type: int, key: str) -> BrokerId:
    if key_type == groups:
        return await call.node.group_coordinator.find(key)
    if key_type == transactions:
        require_name(key)
        return await call.node.transaction_coordinator.find(key)
    fault = CoordinatorUnavailable("share groups are not supported yet")
    call.connection.door.warn_once(f"client {call.client_id!r} asks for a coordinator, and will go on asking: {fault}")
    raise fault
