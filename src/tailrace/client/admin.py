"""Admin requests: create, change, describe and delete topics; change and read the settings of groups.

A call about several topics returns a result for each: None, or the `Refused` of that topic. Topics for which a broker
found no controller are sent again; topics that the controller refused are not.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import Refused, check
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribedConfig, ResourceAsked
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tailrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from tailrace.wire.messages.metadata import TopicMetadata

TOPIC: Final = 2  # Kafka's resource types
GROUP: Final = 32
SET: Final = 0
UNSET: Final = 1
NO_CONTROLLER: Final = (Error.NOT_CONTROLLER, Error.BROKER_NOT_AVAILABLE)

Results = dict[str, Refused | None]


async def create_topics(cluster: Cluster, topics: Sequence[NewTopic]) -> Results:
    wanted = {one.name: one for one in topics}

    async def ask(names: Sequence[str]) -> Results:
        request = CreateTopicsRequest(topics=tuple(wanted[name] for name in names), timeout_ms=_timeout_ms(cluster))
        answer = await cluster.call_any(request)
        return {
            one.name: _result(one.error_code, f"create topic {one.name}", one.error_message) for one in answer.topics
        }

    return await _each(cluster, "create topics", list(wanted), ask)


async def delete_topics(cluster: Cluster, names: Sequence[str]) -> Results:
    async def ask(names: Sequence[str]) -> Results:
        topics = tuple(TopicToDelete(name=name) for name in names)
        request = DeleteTopicsRequest(topics=topics, topic_names=tuple(names), timeout_ms=_timeout_ms(cluster))
        answer = await cluster.call_any(request)
        return {
            one.name: _result(one.error_code, f"delete topic {one.name}", one.error_message) for one in answer.topics
        }

    return await _each(cluster, "delete topics", list(dict.fromkeys(names)), ask)


async def create_partitions(cluster: Cluster, topic: str, count: int) -> None:
    """Let a topic have so many partitions."""
    what = f"change {topic} to {count} partitions"

    async def ask(_: Sequence[str]) -> Results:
        wanted = TopicToGrow(name=topic, count=count)
        answer = await cluster.call_any(CreatePartitionsRequest(topics=(wanted,), timeout_ms=_timeout_ms(cluster)))
        return {one.name: _result(one.error_code, what, one.error_message) for one in answer.results}

    _raise((await _each(cluster, what, [topic], ask))[topic])


async def change_topic_settings(cluster: Cluster, topic: str, changes: Mapping[str, str | None]) -> None:
    """Set settings of a topic; None resets one to its default."""
    await _change_settings(cluster, TOPIC, topic, changes, f"change topic {topic}")


async def change_group_settings(cluster: Cluster, group: str, changes: Mapping[str, str | None]) -> None:
    """Set settings of a group, which need not exist yet; None resets one to its default."""
    await _change_settings(cluster, GROUP, group, changes, f"change the settings of group {group}")


async def topic_settings(cluster: Cluster, topic: str) -> list[DescribedConfig]:
    return await _settings(cluster, TOPIC, topic, f"read the settings of {topic}")


async def group_settings(cluster: Cluster, group: str) -> list[DescribedConfig]:
    return await _settings(cluster, GROUP, group, f"read the settings of group {group}")


async def groups_with_settings(cluster: Cluster) -> list[str]:
    """The groups that have settings, whether they exist or not. Unsupported before Kafka 4.1."""

    async def ask() -> list[str]:
        answer = await cluster.call_any(ListConfigResourcesRequest(resource_types=(GROUP,)))
        check(answer.error_code, "list the groups that have settings")
        return sorted(one.resource_name for one in answer.config_resources if one.resource_type == GROUP)

    return await cluster.retry("list the groups that have settings", ask)


async def _change_settings(
    cluster: Cluster, kind: int, name: str, changes: Mapping[str, str | None], what: str
) -> None:
    async def ask(_: Sequence[str]) -> Results:
        configs = tuple(
            ConfigChange(name=name, config_operation=UNSET if value is None else SET, value=value)
            for name, value in changes.items()
        )
        wanted = ResourceToAlter(resource_type=kind, resource_name=name, configs=configs)
        answer = await cluster.call_any(IncrementalAlterConfigsRequest(resources=(wanted,)))
        return {one.resource_name: _result(one.error_code, what, one.error_message) for one in answer.resources}

    _raise((await _each(cluster, what, [name], ask))[name])


async def _settings(cluster: Cluster, kind: int, name: str, what: str) -> list[DescribedConfig]:
    async def ask() -> list[DescribedConfig]:
        wanted = ResourceAsked(resource_type=kind, resource_name=name)
        (answer,) = (await cluster.call_any(DescribeConfigsRequest(resources=(wanted,)))).results
        check(answer.error_code, what, answer.error_message)
        return list(answer.configs)

    return await cluster.retry(what, ask)


async def list_topics(cluster: Cluster) -> list[TopicMetadata]:
    async def ask() -> list[TopicMetadata]:
        return list((await cluster.refresh(None)).topics)

    return await cluster.retry("list topics", ask)


async def describe_topic(cluster: Cluster, name: str) -> TopicMetadata:
    what = f"describe topic {name}"

    async def ask() -> TopicMetadata:
        (topic,) = (await cluster.refresh([name])).topics
        check(topic.error_code, what)
        return topic

    return await cluster.retry(what, ask)


async def _each(
    cluster: Cluster, what: str, names: list[str], ask: Callable[[Sequence[str]], Awaitable[Results]]
) -> Results:
    """Ask until there is a result for each name; those that the controller did not see are asked for again."""
    results: Results = {}

    async def attempt() -> Results:
        left = [name for name in names if name not in results]
        for name, refused in (await ask(left)).items():
            if refused is None or refused.error not in NO_CONTROLLER:
                results[name] = refused
        if missing := [name for name in names if name not in results]:
            raise Retry(f"there is no controller ({missing[0]})")
        return results

    return await cluster.retry(what, attempt)


def _result(code: int, what: str, message: str | None) -> Refused | None:
    return Refused(code, what, message) if code else None


def _raise(refused: Refused | None) -> None:
    if refused is not None:
        raise refused


def _timeout_ms(cluster: Cluster) -> int:
    return int(cluster.limits.request_s * 1000)
