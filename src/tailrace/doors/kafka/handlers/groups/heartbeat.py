"""Heartbeat: a member is there, and hears whether all must join again."""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.group_members import coordinator_of
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def heartbeat(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    group_id, who = request.group_id, MemberId(request.member_id, request.group_instance_id)
    try:
        coordinator = coordinator_of(call, group_id)
        await coordinator.act(lambda machine, turn: machine.heartbeat(group_id, who, request.generation_id, turn))
    except Fault as fault:
        return HeartbeatResponse(error_code=error_of(fault))
    return HeartbeatResponse()
