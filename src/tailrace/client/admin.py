"""Admin requests: create, change, describe and delete topics; change and read the settings of groups.

A call about several topics returns a result for each: None, or the `Refused` of that topic. Topics for which a broker
found no controller are sent again; topics that the controller refused are not.

A request whose response was lost is sent again, too, and the first one may have been executed. So if a repeated request
is refused because its work is done already (the topic to create exists, the one to delete does not, there are as many
partitions), the call succeeds: the cluster is as the caller wanted it. The client cannot tell whether it was its own
request that did so, or another client meanwhile. Without a lost response, such a refusal is the result.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import Refused, Unavailable, check
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
IsDone = Callable[[Refused], Awaitable[bool]]  # whether a repeated request is refused because it was executed before


async def create_topics(cluster: Cluster, topics: Sequence[NewTopic]) -> Results:
    wanted = {one.name: one for one in topics}

    def request(names: Sequence[str]) -> CreateTopicsRequest:
        return CreateTopicsRequest(topics=tuple(wanted[name] for name in names), timeout_ms=_timeout_ms(cluster))

    def read(answer: Any) -> Results:
        return {
            one.name: _result(one.error_code, f"create topic {one.name}", one.error_message) for one in answer.topics
        }

    async def exists(refused: Refused) -> bool:
        return refused.error is Error.TOPIC_ALREADY_EXISTS

    return await _each(cluster, "create topics", list(wanted), request, read, exists)


async def delete_topics(cluster: Cluster, names: Sequence[str]) -> Results:
    def request(names: Sequence[str]) -> DeleteTopicsRequest:
        topics = tuple(TopicToDelete(name=name) for name in names)
        return DeleteTopicsRequest(topics=topics, topic_names=tuple(names), timeout_ms=_timeout_ms(cluster))

    def read(answer: Any) -> Results:
        return {
            one.name: _result(one.error_code, f"delete topic {one.name}", one.error_message) for one in answer.topics
        }

    async def is_gone(refused: Refused) -> bool:
        return refused.error is Error.UNKNOWN_TOPIC_OR_PARTITION

    return await _each(cluster, "delete topics", list(dict.fromkeys(names)), request, read, is_gone)


async def create_partitions(cluster: Cluster, topic: str, count: int) -> None:
    """Let a topic have so many partitions."""
    what = f"change {topic} to {count} partitions"

    def request(_: Sequence[str]) -> CreatePartitionsRequest:
        return CreatePartitionsRequest(topics=(TopicToGrow(name=topic, count=count),), timeout_ms=_timeout_ms(cluster))

    def read(answer: Any) -> Results:
        return {one.name: _result(one.error_code, what, one.error_message) for one in answer.results}

    async def has_as_many(refused: Refused) -> bool:
        return refused.error is Error.INVALID_PARTITIONS and await _has_partitions(cluster, topic, count)

    _raise((await _each(cluster, what, [topic], request, read, has_as_many))[topic])


async def _has_partitions(cluster: Cluster, topic: str, count: int) -> bool:
    async def look() -> bool:
        (found,) = (await cluster.refresh([topic])).topics
        if len(found.partitions) < count:
            raise Retry(f"{topic} has {len(found.partitions)} partitions")  # the broker may lag behind the controller
        return len(found.partitions) == count

    try:
        return await cluster.retry(f"count the partitions of {topic}", look, cluster.limits.unknown_s)
    except Unavailable:
        return False


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
    def request(_: Sequence[str]) -> IncrementalAlterConfigsRequest:
        configs = tuple(
            ConfigChange(name=setting, config_operation=UNSET if value is None else SET, value=value)
            for setting, value in changes.items()
        )
        wanted = ResourceToAlter(resource_type=kind, resource_name=name, configs=configs)
        return IncrementalAlterConfigsRequest(resources=(wanted,))

    def read(answer: Any) -> Results:
        return {one.resource_name: _result(one.error_code, what, one.error_message) for one in answer.resources}

    async def never(_: Refused) -> bool:
        return False  # settings may be set twice

    _raise((await _each(cluster, what, [name], request, read, never))[name])


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
    cluster: Cluster,
    what: str,
    names: list[str],
    request: Callable[[Sequence[str]], object],
    read: Callable[[Any], Results],
    is_done: IsDone,
) -> Results:
    """Ask until there is a result for each name; those that the controller did not see are asked for again."""
    results: Results = {}
    unanswered: dict[str, None] = {}  # names in a request that may have been executed

    async def attempt() -> Results:
        left = [name for name in names if name not in results]
        answer = await cluster.call_any(request(left), lambda: unanswered.update(dict.fromkeys(left)))
        for name, refused in read(answer).items():
            if refused is not None and name in unanswered and await is_done(refused):
                results[name] = None
            elif refused is None or refused.error not in NO_CONTROLLER:
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
