"""LeaveGroup: members leave a classic group, so that it need not wait for their session timeout. From version 3 on, a
request may name several.
"""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeftMember

FIRST_WITH_MANY: Final = 3


async def leave_group(request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
    members = [MemberId(one.member_id, one.group_instance_id) for one in request.members]
    if call.version < FIRST_WITH_MANY:
        members = [MemberId(request.member_id)]
    try:
        results = await call.services.groups.leave(call.caller, request.group_id, members)
    except Fault as fault:
        return LeaveGroupResponse(error_code=error_of(fault))
    if call.version < FIRST_WITH_MANY:
        (fault_or_none,) = results
        return LeaveGroupResponse(error_code=0 if fault_or_none is None else error_of(fault_or_none))
    return LeaveGroupResponse(
        members=tuple(
            LeftMember(
                member_id=one.member_id,
                group_instance_id=one.instance_id,
                error_code=0 if fault is None else error_of(fault),
            )
            for one, fault in zip(members, results, strict=True)
        )
    )
