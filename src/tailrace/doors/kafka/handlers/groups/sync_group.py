"""SyncGroup: the group leader sends the assignment of a generation, and every member gets its part of it."""

from tailrace.doors.kafka.call import Call
from tailrace.groups.requests import MemberId, SyncRequest
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def sync_group(request: SyncGroupRequest, call: Call) -> SyncGroupResponse:
    wanted = SyncRequest(
        identity=MemberId(request.member_id, request.group_instance_id),
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={one.member_id: one.assignment for one in request.assignments},
    )
    try:
        synced = await call.services.groups.sync(call.caller, request.group_id, wanted)
    except Fault as fault:
        return SyncGroupResponse(error_code=error_of(fault))
    return SyncGroupResponse(
        protocol_type=synced.protocol_type, protocol_name=synced.protocol, assignment=synced.assignment
    )
