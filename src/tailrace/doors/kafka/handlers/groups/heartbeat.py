"""Heartbeat: keeps a member of a classic group alive; REBALANCE_IN_PROGRESS tells it to join again."""

from tailrace.doors.kafka.call import Call
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def heartbeat(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    group_id, member = request.group_id, MemberId(request.member_id, request.group_instance_id)
    try:
        await call.services.groups.heartbeat(call.caller, group_id, member, request.generation_id)
    except Fault as fault:
        return HeartbeatResponse(error_code=error_of(fault))
    return HeartbeatResponse()
