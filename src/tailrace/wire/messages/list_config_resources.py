"""ListConfigResources: the resources that have settings. Version 0 lists only client metrics."""

from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@message(api=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """The resource types to list; an empty array means all."""

    resource_types: tuple[Int8, ...] = wire(since=1, default=())


@struct
class ConfigResource:
    """A resource that has settings."""

    resource_name: str
    resource_type: Int8 = wire(since=1, default=16, ignorable=True)  # 2: a topic, 4: a broker, 16: client metrics


@message(api=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """The resources."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: tuple[ConfigResource, ...]
