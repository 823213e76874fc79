"""IncrementalAlterConfigs: change the named settings of a topic, broker or group, all or none; keep the others."""

from collections.abc import Sequence

from tailrace.broker.services.admin import Alteration, SettingChange
from tailrace.cluster.settings import Operation
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.configs.alterations import alter_each
from tailrace.doors.kafka.request_limits import repeated
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceToAlter,
)


async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    alterations = [
        Alteration(kind=one.resource_type, name=one.resource_name, changes=_changes(one)) for one in request.resources
    ]
    resources = await alter_each(call, alterations, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(resources=resources)


def _changes(wanted: ResourceToAlter) -> Sequence[SettingChange] | Fault:
    if twice := repeated(one.name for one in wanted.configs):
        return InvalidRequest(f"Error due to duplicate config keys: {next(iter(twice))}")
    try:
        return [_change(one) for one in wanted.configs]
    except Fault as fault:
        return fault


def _change(one: ConfigChange) -> SettingChange:
    try:
        operation = Operation(one.config_operation)
    except ValueError:
        raise InvalidRequest(f"{one.name}: unknown operation {one.config_operation}") from None
    if one.value is None and operation is not Operation.DELETE:
        raise InvalidRequest(f"Null value not supported for : {one.name}")
    return SettingChange(name=one.name, operation=operation, value=one.value)
