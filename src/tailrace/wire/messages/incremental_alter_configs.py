"""IncrementalAlterConfigs: change single settings of topics and brokers."""

from tailrace.wire.messages.alter_configs import AlteredResource
from tailrace.wire.schema import Int8, Int32, message, struct, wire


@struct
class ConfigChange:
    """One setting: operation 0 sets it, 1 deletes it, 2 appends to a list, 3 removes from a list."""

    name: str
    config_operation: Int8
    value: str | None = wire(nullable="0+")


@struct
class ResourceToAlter:
    """A topic or broker and the changes to it."""

    resource_type: Int8
    resource_name: str
    configs: tuple[ConfigChange, ...]


@message(api=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """The changes of each resource."""

    resources: tuple[ResourceToAlter, ...]
    validate_only: bool = False


@message(api=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """The result for each resource."""

    throttle_time_ms: Int32 = 0
    resources: tuple[AlteredResource, ...]
