"""ApiVersions: the APIs and versions that a broker supports; the first request of a client.

The response header is always version 0, so that every client can read it.
"""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@message(api=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    """The name and version of the client software."""

    client_software_name: str = wire(since=3, default="", ignorable=True)
    client_software_version: str = wire(since=3, default="", ignorable=True)


@struct
class ApiRange:
    """One API and the range of its versions that the broker supports."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


@struct
class SupportedFeature:
    """A feature of the cluster and the levels that this broker supports."""

    name: str
    min_version: Int16
    max_version: Int16


@struct
class FinalizedFeature:
    """A feature of the cluster and its level in force."""

    name: str
    max_version_level: Int16
    min_version_level: Int16


@message(api=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """The supported APIs and features."""

    error_code: Int16 = 0
    api_keys: tuple[ApiRange, ...]
    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    supported_features: tuple[SupportedFeature, ...] = wire(tag=0, since=3, default=(), ignorable=True)
    finalized_features_epoch: Int64 = wire(tag=1, since=3, default=-1, ignorable=True)  # -1: not known
    finalized_features: tuple[FinalizedFeature, ...] = wire(tag=2, since=3, default=(), ignorable=True)
    # From Kafka's migration to KRaft; always False here.
    zk_migration_ready: bool = wire(tag=3, since=3, default=False, ignorable=True)
