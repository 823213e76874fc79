"""DeleteGroups: delete groups without members, and their committed offsets. Each group has its own result.

A group with an empty id may exist: offsets can be committed under it.
"""

from functools import partial

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import each, once
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.delete_groups import DeletedGroup, DeleteGroupsRequest, DeleteGroupsResponse


async def delete_groups(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(await each(once(request.groups_names), partial(_delete, call))))


async def _delete(call: Call, group_id: str) -> DeletedGroup:
    try:
        await call.services.groups.delete(call.caller, group_id)
    except Fault as fault:
        return DeletedGroup(group_id=group_id, error_code=error_of(fault))
    return DeletedGroup(group_id=group_id)
