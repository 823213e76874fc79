"""ConsumerGroupDescribe: who is in groups of KIP-848, what each member has, and what it shall have."""

from functools import partial

from tailrace.doors.kafka.authorized_operations import allowed_on_group
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.group_members import coordinator_of
from tailrace.doors.kafka.request_limits import once
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember
from tailrace.groups.consumer.shares import Share, by_topic
from tailrace.groups.groups import Groups
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.consumer_group_describe import (
    Assigned,
    AssignedTopic,
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
        coordinator = coordinator_of(call, group_id)
        return await coordinator.ask(partial(_shown, call, group_id, coordinator.rules.assignors[0], operations))
    except Fault as fault:
        return DescribedConsumerGroup(group_id=group_id, error_code=error_of(fault), error_message=str(fault))


def _shown(call: Call, group_id: str, assignor: str, operations: int, machine: Groups) -> DescribedConsumerGroup:
    group = machine.find_kind(group_id, ConsumerGroup)
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor(assignor),
        members=tuple(_member(call, one, group.target.get(one.id, ())) for one in group.members.values()),
        authorized_operations=operations,
    )


def _member(call: Call, member: ConsumerMember, target: Share) -> DescribedMember:
    profile = member.profile
    return DescribedMember(
        member_id=member.id,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        member_epoch=member.standing.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=profile.subscribed_topic_names,
        subscribed_topic_regex=profile.subscribed_topic_regex,
        assignment=_assigned(call, member.standing.assigned),
        target_assignment=_assigned(call, target),
        member_type=0 if member.is_classic else 1,
    )


def _assigned(call: Call, partitions: Share) -> Assigned:
    """Of topics that are gone nothing is told."""
    topics = call.node.hosted.image.topics_by_id
    return Assigned(
        topic_partitions=tuple(
            AssignedTopic(topic_id=topic, topic_name=topics[topic].name, partitions=some)
            for topic, some in by_topic(partitions).items()
            if topic in topics
        )
    )
