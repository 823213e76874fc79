"""Settings as Kafka shows them: each with its value, where that was set, and the weaker places it was set in.

A topic's own value is the strongest; then come this broker's and all brokers' as the metadata log has them, what the
broker was started with, and the default.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import Final

from tailrace.broker.node import Node
from tailrace.cluster.settings import CHANGEABLE_BROKER_SETTINGS, LIST_SETTINGS
from tailrace.model.frozen import frozen
from tailrace.model.group_settings import BROKER_NAMES
from tailrace.model.settings import kind_of, row, rows
from tailrace.model.topics import TOPIC_SETTINGS, TopicSetting, text_of
from tailrace.wire.messages.describe_configs import ConfigSynonym, DescribedConfig

LONG_NAMES: Final = ("ms", "flush.messages", "interval.messages", "retention.bytes")  # 64 bits wide in Kafka
ALL_BROKERS: Final = ""


class Source(IntEnum):
    """Kafka's numbers for where a value was set."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    START = 4
    DEFAULT = 5
    GROUP = 8


class Kind(IntEnum):
    """Kafka's numbers for types of values."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@frozen
class WantedSettings:
    """What to show of settings."""

    names: Collection[str] | None = None  # None: all
    synonyms: bool = False
    documentation: bool = False

    def has(self, name: str) -> bool:
        return self.names is None or name in self.names


def topic_values(node: Node, own: Mapping[str, str], wanted: WantedSettings) -> Iterator[DescribedConfig]:
    """All settings of a topic that has these of its own."""
    for setting in TOPIC_SETTINGS.values():
        if wanted.has(setting.name):
            yield _described(
                setting.name, _kind(setting.name, setting.kind), setting.help, _topic_places(node, own, setting), wanted
            )


def broker_values(node: Node, wanted: WantedSettings) -> Iterator[DescribedConfig]:
    """All settings of this broker."""
    for name, one in rows().items():
        if wanted.has(name):
            read_only = name not in CHANGEABLE_BROKER_SETTINGS
            places = list(_broker_places(node, name))
            yield _described(name, _kind(name, kind_of(one)), row(one).help, places, wanted, read_only=read_only)


def group_values(node: Node, group_id: str, wanted: WantedSettings) -> Iterator[DescribedConfig]:
    """All settings of a group, whether it is there or not."""
    own = node.hosted.image.group_settings.get(group_id, {})
    for name, broker_name in BROKER_NAMES.items():
        if wanted.has(name):
            places = list(_broker_places(node, broker_name))
            if name in own:
                places.insert(0, ConfigSynonym(name=name, value=own[name], source=Source.GROUP))
            yield _described(name, Kind.INT, row(rows()[broker_name]).help, places, wanted)


def all_brokers_values(node: Node, wanted: WantedSettings) -> Iterator[DescribedConfig]:
    """What was set for all brokers, and only that."""
    for name, value in node.hosted.image.broker_settings.get(ALL_BROKERS, {}).items():
        if wanted.has(name):
            one = rows()[name]
            place = ConfigSynonym(name=name, value=value, source=Source.ALL_BROKERS)
            yield _described(name, _kind(name, kind_of(one)), row(one).help, [place], wanted)


def _topic_places(node: Node, own: Mapping[str, str], setting: TopicSetting) -> list[ConfigSynonym]:
    places = []
    if setting.name in own:
        places.append(ConfigSynonym(name=setting.name, value=own[setting.name], source=Source.TOPIC))
    if setting.broker is None:
        places.append(ConfigSynonym(name=setting.name, value=text_of(setting.default), source=Source.DEFAULT))
    else:
        places += _broker_places(node, _kafka_name(setting.broker))
    return places


@cache
def _kafka_name(field: str) -> str:
    return next(name for name, one in rows().items() if one.name == field)


def _broker_places(node: Node, name: str) -> Iterator[ConfigSynonym]:
    told = node.hosted.image.broker_settings
    for owner, source in ((str(node.broker_id), Source.BROKER), (ALL_BROKERS, Source.ALL_BROKERS)):
        if name in told.get(owner, {}):
            yield ConfigSynonym(name=name, value=told[owner][name], source=source)
    one = rows()[name]
    started_with = getattr(node.settings, one.name)
    if started_with != one.default:
        yield ConfigSynonym(name=name, value=text_of(started_with), source=Source.START)
    yield ConfigSynonym(name=name, value=text_of(one.default), source=Source.DEFAULT)


def _described(
    name: str, kind: Kind, help: str, places: list[ConfigSynonym], wanted: WantedSettings, *, read_only: bool = False
) -> DescribedConfig:
    return DescribedConfig(
        name=name,
        value=places[0].value,
        read_only=read_only,
        config_source=places[0].source,
        synonyms=tuple(places) if wanted.synonyms else (),
        config_type=kind,
        documentation=help if wanted.documentation else None,
    )


def _kind(name: str, kind: type) -> Kind:
    if name in LIST_SETTINGS:
        return Kind.LIST
    if kind is int:
        return Kind.LONG if name.endswith(LONG_NAMES) else Kind.INT
    if kind is bool:
        return Kind.BOOLEAN
    return Kind.DOUBLE if kind is float else Kind.STRING
