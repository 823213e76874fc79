"""JoinGroup: join a classic group. The response is sent when all members have joined or the rebalance times out."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.group_members import client_host, client_id
from tailrace.groups.requests import JoinAnswer, JoinRequest, MemberId
from tailrace.model.faults import Fault, MemberIdRequired
from tailrace.wire.faults import error_of
from tailrace.wire.messages.join_group import JoinedMember, JoinGroupRequest, JoinGroupResponse

FIRST_WITH_REBALANCE_TIMEOUT: Final = 1
FIRST_TO_COME_BACK: Final = 4  # MEMBER_ID_REQUIRED: a new member gets an id, and joins again with it (KIP-394)
FIRST_TO_SKIP_ASSIGNMENT: Final = 9


async def join_group(request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    wanted = _wanted(request, call)
    try:
        joined = await call.services.groups.join(call.caller, request.group_id, wanted)
    except Fault as fault:
        member_id = fault.member_id if isinstance(fault, MemberIdRequired) else request.member_id
        return JoinGroupResponse(error_code=error_of(fault), member_id=member_id)
    return _joined(joined)


def _wanted(request: JoinGroupRequest, call: Call) -> JoinRequest:
    says_timeout = call.version >= FIRST_WITH_REBALANCE_TIMEOUT
    return JoinRequest(
        identity=MemberId(request.member_id, request.group_instance_id),
        client_id=client_id(call),
        client_host=client_host(call),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if says_timeout else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols={one.name: one.metadata for one in request.protocols},
        id_required=call.version >= FIRST_TO_COME_BACK,
        may_skip_assignment=call.version >= FIRST_TO_SKIP_ASSIGNMENT,
    )


def _joined(joined: JoinAnswer) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=tuple(
            JoinedMember(member_id=one.member_id, group_instance_id=one.instance_id, metadata=one.metadata)
            for one in joined.members
        ),
    )
