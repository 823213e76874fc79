"""ListConfigResources: the resources that have settings. Version 0 lists client metrics only, and there are none."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.wire.errors import Error
from tailrace.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

FIRST_WITH_TYPES: Final = 1
KINDS_WITHOUT_MEMBERS: Final = (8, 16)  # loggers of brokers, client metrics


async def list_config_resources(request: ListConfigResourcesRequest, call: Call) -> ListConfigResourcesResponse:
    members = call.services.admin.resources(call.caller)
    if call.version < FIRST_WITH_TYPES:
        return ListConfigResourcesResponse(config_resources=())
    if any(kind not in members and kind not in KINDS_WITHOUT_MEMBERS for kind in request.resource_types):
        return ListConfigResourcesResponse(error_code=Error.UNSUPPORTED_VERSION, config_resources=())
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, names in members.items()
            if kind in request.resource_types or not request.resource_types
            for name in names
        )
    )
