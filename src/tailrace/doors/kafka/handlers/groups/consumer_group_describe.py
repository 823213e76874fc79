"""ConsumerGroupDescribe: the members of groups of the consumer protocol (KIP-848), with their current and target
assignments.
"""

from tailrace.broker.services.groups import ConsumerGroupView, ConsumerMemberView
from tailrace.doors.kafka.authorized_operations import allowed_on_group
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.assignments import described_assignment
from tailrace.doors.kafka.request_limits import once
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from tailrace.wire.messages.consumer_group_describe import ConsumerMember as DescribedMember


async def consumer_group_describe(request: ConsumerGroupDescribeRequest, call: Call) -> ConsumerGroupDescribeResponse:
    operations = allowed_on_group(request.include_authorized_operations)
    groups = [await _described(call, one, operations) for one in once(request.group_ids)]
    return ConsumerGroupDescribeResponse(groups=tuple(groups))


async def _described(call: Call, group_id: str, operations: int) -> DescribedConsumerGroup:
    try:
        group = await call.services.groups.describe_consumer(call.caller, group_id)
    except Fault as fault:
        return DescribedConsumerGroup(group_id=group_id, error_code=error_of(fault), error_message=str(fault))
    return _shown(call, group_id, group, operations)


def _shown(call: Call, group_id: str, group: ConsumerGroupView, operations: int) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=tuple(_member(call, one) for one in group.members),
        authorized_operations=operations,
    )


def _member(call: Call, view: ConsumerMemberView) -> DescribedMember:
    member, profile = view.member, view.member.profile
    return DescribedMember(
        member_id=member.id,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        member_epoch=member.current.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=profile.subscribed_topic_names,
        subscribed_topic_regex=profile.subscribed_topic_regex,
        assignment=described_assignment(call, view.assigned),
        target_assignment=described_assignment(call, view.target),
        member_type=0 if member.is_classic else 1,
    )
