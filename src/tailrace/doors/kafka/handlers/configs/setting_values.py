"""Settings as Kafka describes them: value, source, type, and synonyms (the values that it overrides)."""

from collections.abc import Collection
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from tailrace.broker.services.admin import SettingSource, SettingView
from tailrace.cluster.settings import LIST_SETTINGS
from tailrace.model.frozen import frozen
from tailrace.wire.messages.describe_configs import ConfigSynonym, DescribedConfig

LONG_NAMES: Final = ("ms", "flush.messages", "interval.messages", "retention.bytes")  # suffixes of LONG settings

SOURCE_NUMBERS: Final = MappingProxyType(
    {
        SettingSource.TOPIC: 1,
        SettingSource.BROKER: 2,
        SettingSource.ALL_BROKERS: 3,
        SettingSource.START: 4,
        SettingSource.DEFAULT: 5,
        SettingSource.GROUP: 8,
    }
)


class Kind(IntEnum):
    """Kafka's numbers of config types."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


@frozen
class WantedSettings:
    """Which settings a request wants, and what of them."""

    names: Collection[str] | None = None  # None: all
    synonyms: bool = False
    documentation: bool = False

    def has(self, name: str) -> bool:
        return self.names is None or name in self.names


def source_number(source: SettingSource) -> int:
    return SOURCE_NUMBERS[source]


def described(setting: SettingView, wanted: WantedSettings) -> DescribedConfig:
    strongest = setting.values[0]
    return DescribedConfig(
        name=setting.name,
        value=None if setting.secret else strongest.value,
        read_only=setting.read_only,
        config_source=source_number(strongest.source),
        is_sensitive=setting.secret,
        synonyms=_synonyms(setting) if wanted.synonyms else (),
        config_type=Kind.PASSWORD if setting.secret else _kind(setting.name, setting.kind),
        documentation=setting.help if wanted.documentation else None,
    )


def _synonyms(setting: SettingView) -> tuple[ConfigSynonym, ...]:
    return tuple(
        ConfigSynonym(name=one.name, value=None if setting.secret else one.value, source=source_number(one.source))
        for one in setting.values
    )


def _kind(name: str, kind: type) -> Kind:
    if name in LIST_SETTINGS or kind is list:
        return Kind.LIST
    if kind is int:
        return Kind.LONG if name.endswith(LONG_NAMES) else Kind.INT
    if kind is bool:
        return Kind.BOOLEAN
    return Kind.DOUBLE if kind is float else Kind.STRING
