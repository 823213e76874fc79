"""Changes to the settings of a topic, a broker or a group: set, delete, append to or subtract from a list."""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final

from tailrace.cluster.image import Resource
from tailrace.model.faults import InvalidSetting
from tailrace.model.frozen import frozen
from tailrace.model.group_settings import check_group, check_group_setting
from tailrace.model.settings import SettingError, check, kind_of, parse, row, rows
from tailrace.model.topics import TOPIC_SETTINGS, check_topic_relations, check_topic_setting

LIST_SETTINGS: Final = (
    "cleanup.policy",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
# The broker's defaults of topic settings, and others that are looked up whenever they are used.
CHANGEABLE_BROKER_SETTINGS: Final = (
    *(name for name, one in rows().items() if one.name in [setting.broker for setting in TOPIC_SETTINGS.values()]),
    "log.cleaner.threads",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.backoff.ms",
)


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs, with Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@frozen
class SettingChange:
    name: str
    operation: Operation
    value: str | None


def changed_settings(
    resource: Resource, own: Mapping[str, str], changes: Sequence[SettingChange]
) -> Iterator[tuple[str, str | None]]:
    """The changed settings with their new values; None: back to the default. Raises `InvalidSetting`."""
    names = [change.name for change in changes]
    if len(dict.fromkeys(names)) != len(names):
        raise InvalidSetting(f"Error due to duplicate config keys: {', '.join(names)}")
    after = dict(own)
    for change in changes:
        value = _new_value(own, change)
        after.pop(change.name, None)
        if value is not None:
            check_setting(resource, change.name, value)
            after[change.name] = value
        yield change.name, value
    if resource is Resource.GROUP:
        check_group(after)
    if resource is Resource.TOPIC:
        check_topic_relations(after)


def _new_value(own: Mapping[str, str], change: SettingChange) -> str | None:
    if change.operation is Operation.DELETE:
        return None
    if change.value is None:
        raise InvalidSetting(f"{change.name} has no value; use DELETE to reset it to its default")
    if change.operation is Operation.SET:
        return change.value
    if change.name not in LIST_SETTINGS:
        raise InvalidSetting(f"{change.name} is not a list: APPEND and SUBTRACT are not allowed")
    current = [item for item in own.get(change.name, _default(change.name)).split(",") if item]
    given = [item for item in change.value.split(",") if item]
    if change.operation is Operation.APPEND:
        return ",".join(dict.fromkeys(current + given))
    return ",".join(item for item in current if item not in given)


def _default(name: str) -> str:
    return str(TOPIC_SETTINGS[name].default)


def check_setting(resource: Resource, name: str, value: str) -> None:
    if resource is Resource.TOPIC:
        check_topic_setting(name, value)
        return
    if resource is Resource.GROUP:
        check_group_setting(name, value)
        return
    one = rows().get(name)
    if one is None:
        raise InvalidSetting(f"Unknown broker config name: {name}")
    if name not in CHANGEABLE_BROKER_SETTINGS:
        raise InvalidSetting(f"Cannot update {name} dynamically: change the broker's configuration and restart it")
    try:
        check(row(one), parse(name, kind_of(one), value))
    except SettingError as error:
        raise InvalidSetting(str(error)) from None
