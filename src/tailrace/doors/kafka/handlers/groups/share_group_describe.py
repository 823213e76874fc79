"""ShareGroupDescribe: the members of share groups (KIP-932), with their assignments."""

from tailrace.broker.services.share_groups import ShareGroupView
from tailrace.doors.kafka.authorized_operations import allowed_on_group
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.assignments import described_assignment
from tailrace.doors.kafka.request_limits import each, once
from tailrace.groups.share.member import ShareMember
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.share_group_describe import (
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from tailrace.wire.messages.share_group_describe import ShareMember as DescribedMember


async def share_group_describe(request: ShareGroupDescribeRequest, call: Call) -> ShareGroupDescribeResponse:
    operations = allowed_on_group(request.include_authorized_operations)
    groups = await each(once(request.group_ids), lambda one: _described(call, one, operations))
    return ShareGroupDescribeResponse(groups=tuple(groups))


async def _described(call: Call, group_id: str, operations: int) -> DescribedShareGroup:
    try:
        group = await call.services.share_groups.describe(call.caller, group_id)
    except Fault as fault:
        return DescribedShareGroup(group_id=group_id, error_code=error_of(fault), error_message=str(fault))
    return _shown(call, group_id, group, operations)


def _shown(call: Call, group_id: str, group: ShareGroupView, operations: int) -> DescribedShareGroup:
    return DescribedShareGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=tuple(_member(call, one) for one in group.members),
        authorized_operations=operations,
    )


def _member(call: Call, member: ShareMember) -> DescribedMember:
    profile = member.profile
    return DescribedMember(
        member_id=member.id,
        rack_id=profile.rack_id,
        member_epoch=member.current.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=profile.subscribed_topic_names,
        assignment=described_assignment(call, member.current.assigned),
    )
