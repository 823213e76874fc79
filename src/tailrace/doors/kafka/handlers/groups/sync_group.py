"""SyncGroup: a member fetches its part of the work, when the leader of its generation has shared it out."""

from functools import partial

from tailrace.broker.groups.partition_coordinator import Ticket
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.group_members import coordinator_of
from tailrace.groups.groups import Groups
from tailrace.groups.requests import MemberId, Synced, Syncing
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def sync_group(request: SyncGroupRequest, call: Call) -> SyncGroupResponse:
    wanted = Syncing(
        who=MemberId(request.member_id, request.group_instance_id),
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={one.member_id: one.assignment for one in request.assignments},
    )
    try:
        synced = await coordinator_of(call, request.group_id).answered(partial(_sync, request.group_id, wanted))
    except Fault as fault:
        return SyncGroupResponse(error_code=error_of(fault))
    assert isinstance(synced, Synced)
    return SyncGroupResponse(
        protocol_type=synced.protocol_type, protocol_name=synced.protocol, assignment=synced.assignment
    )


def _sync(group_id: str, wanted: Syncing, machine: Groups, ticket: Ticket, turn: GroupTurn) -> None:
    machine.sync(group_id, wanted, ticket, turn)
