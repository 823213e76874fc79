"""DescribeConfigs: the settings of topics and brokers, and the source of each."""

from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@struct
class ResourceAsked:
    """A topic or broker and the settings wanted; None for all settings."""

    resource_type: Int8  # 2: a topic, 4: a broker
    resource_name: str
    config_names: tuple[str, ...] | None = wire(nullable="0+", default=None)


@message(api=32, versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    """The topics and brokers whose settings are wanted."""

    resources: tuple[ResourceAsked, ...]
    include_synonyms: bool = False
    include_documentation: bool = wire(since=3, default=False)


@struct
class ConfigSynonym:
    """Another source that gives the setting a value, in order of precedence."""

    name: str
    value: str | None = wire(nullable="0+")
    source: Int8


@struct
class DescribedConfig:
    """One setting, its value and its source."""

    name: str
    value: str | None = wire(nullable="0+")
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    config_type: Int8 = wire(since=3, default=0, ignorable=True)
    documentation: str | None = wire(nullable="0+", since=3, default=None, ignorable=True)


@struct
class DescribedResource:
    """The settings of one topic or broker."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    resource_type: Int8  # 2: a topic, 4: a broker
    resource_name: str
    configs: tuple[DescribedConfig, ...]


@message(api=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """The settings of each resource."""

    throttle_time_ms: Int32 = 0
    results: tuple[DescribedResource, ...]
