"""AlterConfigs: replace all settings of a topic or broker. IncrementalAlterConfigs changes single settings."""

from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@struct
class NewConfig:
    """One setting."""

    name: str
    value: str | None = wire(nullable="0+")


@struct
class ResourceToAlter:
    """A topic or broker and its new settings."""

    resource_type: Int8
    resource_name: str
    configs: tuple[NewConfig, ...]


@message(api=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """The new settings; settings that are not named return to their defaults."""

    resources: tuple[ResourceToAlter, ...]
    validate_only: bool = False


@struct
class AlteredResource:
    """The result for one topic or broker."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    resource_type: Int8
    resource_name: str


@message(api=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """The result for each resource."""

    throttle_time_ms: Int32 = 0
    resources: tuple[AlteredResource, ...]
