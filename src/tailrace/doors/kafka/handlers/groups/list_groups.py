"""ListGroups: the groups that this broker coordinates. Clients send it to every broker to list all."""

from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


async def list_groups(request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    states = {one.lower(): None for one in request.states_filter}
    kinds = {one.lower(): None for one in request.types_filter}
    try:
        found = await call.services.groups.list(call.caller, states, kinds)
    except Fault as fault:
        return ListGroupsResponse(error_code=error_of(fault))
    return ListGroupsResponse(
        groups=tuple(
            ListedGroup(
                group_id=one.group_id, protocol_type=one.protocol_type, group_state=one.state, group_type=one.kind
            )
            for one in found
        )
    )
