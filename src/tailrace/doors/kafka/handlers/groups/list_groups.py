"""ListGroups: the groups that this broker coordinates; whoever wants all asks every broker."""

from collections.abc import Container

from tailrace.doors.kafka.call import Call
from tailrace.groups.groups import Groups
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


async def list_groups(request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    states = {one.lower(): None for one in request.states_filter}
    types = {one.lower(): None for one in request.types_filter}
    found: list[ListedGroup] = []
    try:
        for coordinator in call.node.group_coordinator.local_coordinators:
            found += await coordinator.ask(lambda machine: _listed(machine, states, types))
    except Fault as fault:
        return ListGroupsResponse(error_code=error_of(fault))
    return ListGroupsResponse(groups=tuple(found))


def _listed(machine: Groups, states: Container[str], types: Container[str]) -> list[ListedGroup]:
    """No states, no types: all of them."""
    return [
        ListedGroup(
            group_id=group.id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=group.kind,
        )
        for group in machine.groups.values()
        if (not states or group.state.value.lower() in states) and (not types or group.kind in types)
    ]
