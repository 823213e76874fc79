"""DescribeConfigs: the settings of topics, brokers and groups, each with its value and source.

A broker with an empty name means all brokers: only the settings that were changed for all are returned. No setting is
sensitive.
"""

from collections.abc import Container

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.configs.setting_values import WantedSettings, described
from tailrace.doors.kafka.request_limits import repeated, require_few
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.limits import RESOURCES_PER_REQUEST_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    ResourceAsked,
)


async def describe_configs(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    require_few(len(request.resources), RESOURCES_PER_REQUEST_MAX)
    twice = repeated((one.resource_type, one.resource_name) for one in request.resources)
    results = (_resource(call, request, asked, twice) for asked in request.resources)
    return DescribeConfigsResponse(results=tuple(results))


def _resource(
    call: Call, request: DescribeConfigsRequest, asked: ResourceAsked, twice: Container[tuple[int, str]]
) -> DescribedResource:
    kind, name = asked.resource_type, asked.resource_name
    wanted = WantedSettings(
        names=frozenset(asked.config_names) if asked.config_names else None,
        synonyms=request.include_synonyms,
        documentation=request.include_documentation,
    )
    try:
        if (kind, name) in twice:
            raise InvalidRequest("Each resource must appear at most once.")
        return DescribedResource(resource_type=kind, resource_name=name, configs=_configs(call, kind, name, wanted))
    except Fault as fault:
        return DescribedResource(
            error_code=error_of(fault), error_message=str(fault), resource_type=kind, resource_name=name, configs=()
        )


def _configs(call: Call, kind: int, name: str, wanted: WantedSettings) -> tuple[DescribedConfig, ...]:
    settings = call.services.admin.settings_of(call.caller, kind, name)
    return tuple(described(one, wanted) for one in settings if wanted.has(one.name))
