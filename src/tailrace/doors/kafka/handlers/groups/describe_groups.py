"""DescribeGroups: the state and members of classic groups. Assignments are returned for stable groups only.

A group that does not exist, or is of the consumer protocol, has the state "Dead", and from version 6 on an error. A
group with an empty id may exist: offsets can be committed under it.
"""

from typing import Final

from tailrace.broker.services.groups import ClassicMemberView
from tailrace.doors.kafka.authorized_operations import allowed_on_group
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import each, once
from tailrace.groups.classic.states import State
from tailrace.model.faults import Fault, GroupNotFound
from tailrace.wire.faults import error_of
from tailrace.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

FIRST_WITH_NOT_FOUND: Final = 6


async def describe_groups(request: DescribeGroupsRequest, call: Call) -> DescribeGroupsResponse:
    operations = allowed_on_group(request.include_authorized_operations)
    groups = await each(once(request.groups), lambda one: _described(call, one, operations))
    return DescribeGroupsResponse(groups=tuple(groups))


async def _described(call: Call, group_id: str, operations: int) -> DescribedGroup:
    try:
        group = await call.services.groups.describe_classic(call.caller, group_id)
    except GroupNotFound as fault:
        if call.version < FIRST_WITH_NOT_FOUND:
            return DescribedGroup(group_id=group_id, group_state=State.DEAD.value, authorized_operations=operations)
        return DescribedGroup(
            group_id=group_id, group_state=State.DEAD.value, error_code=error_of(fault), error_message=str(fault)
        )
    except Fault as fault:
        return DescribedGroup(group_id=group_id, error_code=error_of(fault), error_message=str(fault))
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=tuple(_member(one) for one in group.members),
        authorized_operations=operations,
    )


def _member(one: ClassicMemberView) -> DescribedMember:
    return DescribedMember(
        member_id=one.member_id,
        group_instance_id=one.instance_id,
        client_id=one.client_id,
        client_host=one.client_host,
        member_metadata=one.metadata,
        member_assignment=one.assignment,
    )
