"""IncrementalAlterConfigs: change some settings of a topic or broker, all that are named or none; the others stay."""

from functools import partial

from tailrace.cluster.controller import Controller
from tailrace.cluster.image import Resource
from tailrace.cluster.settings import Operation, SettingChange
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import repeated
from tailrace.doors.kafka.handlers.configs.resources import Alteration, alter_each
from tailrace.model.faults import InvalidRequest
from tailrace.model.proposal import Proposal
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
        Alteration(kind=one.resource_type, name=one.resource_name, propose=partial(_change, one))
        for one in request.resources
    ]
    resources = await alter_each(call, alterations, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(resources=resources)


def _change(wanted: ResourceToAlter, controller: Controller, resource: Resource) -> Proposal[None]:
    if twice := repeated(one.name for one in wanted.configs):
        raise InvalidRequest(f"{next(iter(twice))} is changed twice")
    changes = [_setting_change(one) for one in wanted.configs]
    return controller.change_settings(resource, wanted.resource_name, changes)


def _setting_change(one: ConfigChange) -> SettingChange:
    try:
        operation = Operation(one.config_operation)
    except ValueError:
        raise InvalidRequest(f"{one.name}: there is no operation {one.config_operation}") from None
    if one.value is None and operation is not Operation.DELETE:
        raise InvalidRequest(f"{one.name} is set to nothing; delete it to have the default")
    return SettingChange(name=one.name, operation=operation, value=one.value)
