"""ShareGroupHeartbeat: join a share group (KIP-932), stay in it, get the assignment that the coordinator has computed,
and leave.
"""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.assignments import heartbeat_response
from tailrace.doors.kafka.handlers.groups.group_members import client_host, client_id
from tailrace.groups.share.requests import ShareHeartbeat
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.wire.faults import error_of
from tailrace.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


async def share_group_heartbeat(request: ShareGroupHeartbeatRequest, call: Call) -> ShareGroupHeartbeatResponse:
    beat = ShareHeartbeat(
        member_id=request.member_id,
        epoch=request.member_epoch,
        client_id=client_id(call),
        client_host=client_host(call),
        rack_id=request.rack_id,
        names=request.subscribed_topic_names,
    )
    try:
        if not request.group_id:
            raise InvalidRequest("GroupId can't be empty.")
        answer = await call.services.share_groups.heartbeat(call.caller, request.group_id, beat)
    except Fault as fault:
        return ShareGroupHeartbeatResponse(error_code=error_of(fault), error_message=str(fault))
    return heartbeat_response(ShareGroupHeartbeatResponse, answer)
