"""AlterConfigs: replace all settings of a topic, broker or group; settings that are not named return to the default."""

from collections.abc import Mapping

from tailrace.broker.services.admin import Alteration
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.configs.alterations import alter_each
from tailrace.doors.kafka.request_limits import repeated
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse, ResourceToAlter


async def alter_configs(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    alterations = [
        Alteration(kind=one.resource_type, name=one.resource_name, changes=_settings(one)) for one in request.resources
    ]
    return AlterConfigsResponse(resources=await alter_each(call, alterations, validate_only=request.validate_only))


def _settings(wanted: ResourceToAlter) -> Mapping[str, str] | Fault:
    if twice := repeated(one.name for one in wanted.configs):
        return InvalidRequest(f"Error due to duplicate config keys: {next(iter(twice))}")
    settings: dict[str, str] = {}
    for one in wanted.configs:
        if one.value is None:
            return InvalidRequest(f"Null value not supported for : {one.name}")
        settings[one.name] = one.value
    return settings
