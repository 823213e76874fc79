"""AlterConfigs: these and no others are a topic's or broker's own settings from now on."""

from functools import partial

from tailrace.cluster.controller import Controller
from tailrace.cluster.image import Resource
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import repeated
from tailrace.doors.kafka.handlers.configs.resources import Alteration, alter_each
from tailrace.model.faults import InvalidRequest
from tailrace.model.proposal import Proposal
from tailrace.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse, ResourceToAlter


async def alter_configs(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    alterations = [
        Alteration(kind=one.resource_type, name=one.resource_name, propose=partial(_replace, one))
        for one in request.resources
    ]
    return AlterConfigsResponse(resources=await alter_each(call, alterations, validate_only=request.validate_only))


def _replace(wanted: ResourceToAlter, controller: Controller, resource: Resource) -> Proposal[None]:
    if twice := repeated(one.name for one in wanted.configs):
        raise InvalidRequest(f"{next(iter(twice))} is set twice")
    settings: dict[str, str] = {}
    for one in wanted.configs:
        if one.value is None:
            raise InvalidRequest(f"{one.name} is set to nothing; leave it out to have the default")
        settings[one.name] = one.value
    return controller.replace_settings(resource, wanted.resource_name, settings)
