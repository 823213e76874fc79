"""ApiVersions: what a client asks first.

The response header is version 0 whatever the body, so that any client can read it.
"""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@message(api=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    """Who the client is; it wants to know which APIs it may call."""

    client_software_name: str = wire(since=3, default="", ignorable=True)
    client_software_version: str = wire(since=3, default="", ignorable=True)


@struct
class ApiRange:
    """One API and the versions of it that are answered."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


@struct
class SupportedFeature:
    """A cluster feature this broker could run, and at which levels."""

    name: str
    min_version: Int16
    max_version: Int16


@struct
class FinalizedFeature:
    """A cluster feature and the level in force."""

    name: str
    max_version_level: Int16
    min_version_level: Int16


@message(api=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """The APIs and features on offer."""

    error_code: Int16 = 0
    api_keys: tuple[ApiRange, ...]
    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    supported_features: tuple[SupportedFeature, ...] = wire(tag=0, since=3, default=(), ignorable=True)
    finalized_features_epoch: Int64 = wire(tag=1, since=3, default=-1, ignorable=True)  # -1: not known
    finalized_features: tuple[FinalizedFeature, ...] = wire(tag=2, since=3, default=(), ignorable=True)
    # Left over from before KRaft; always False here.
    zk_migration_ready: bool = wire(tag=3, since=3, default=False, ignorable=True)
