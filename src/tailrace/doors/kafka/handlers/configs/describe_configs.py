"""DescribeConfigs: the settings of topics, brokers and groups, each with its value and where that was set.

A broker with an empty name stands for all of them: then only what was set for all is shown. No setting is secret.
"""

from collections.abc import Container, Iterator

from tailrace.cluster.image import Resource
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import repeated
from tailrace.doors.kafka.handlers.configs.resources import resource_to_show
from tailrace.doors.kafka.handlers.configs.setting_values import (
    ALL_BROKERS,
    WantedSettings,
    all_brokers_values,
    broker_values,
    group_values,
    topic_values,
)
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault, InvalidRequest, UnknownTopic
from tailrace.model.limits import RESOURCES_PER_REQUEST_MAX
from tailrace.model.topics import check_topic_name
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
            raise InvalidRequest("the resource is named twice in one request")
        return DescribedResource(resource_type=kind, resource_name=name, configs=tuple(_values(call, asked, wanted)))
    except Fault as fault:
        return DescribedResource(
            error_code=error_of(fault), error_message=str(fault), resource_type=kind, resource_name=name, configs=()
        )


def _values(call: Call, asked: ResourceAsked, wanted: WantedSettings) -> Iterator[DescribedConfig]:
    name = asked.resource_name
    resource = resource_to_show(call, asked.resource_type, name)
    if resource is Resource.GROUP:
        return group_values(call.node, name, wanted)
    if resource is Resource.TOPIC:
        topic = call.node.hosted.image.topics.get(name)
        if topic is None:
            check_topic_name(name)
            raise UnknownTopic(f"there is no topic {name}")
        return topic_values(call.node, topic.settings, wanted)
    return all_brokers_values(call.node, wanted) if name == ALL_BROKERS else broker_values(call.node, wanted)
