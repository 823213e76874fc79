"""UpdateFeatures: raise the levels of cluster-wide features, all of a request or none (KIP-584, KIP-778)."""

from typing import Final

from tailrace.wire.messages.response import ExplainedResponse
from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire

UPGRADE: Final = 1  # the other types are downgrades: 2 without loss, 3 with


@struct
class FeatureToUpdate:
    """A feature and the level that is wanted."""

    feature: str
    max_version_level: Int16
    allow_downgrade: bool = wire(until=0, default=False)
    upgrade_type: Int8 = wire(since=1, default=UPGRADE)


@message(api=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """The levels that are wanted."""

    timeout_ms: Int32 = 60_000
    feature_updates: tuple[FeatureToUpdate, ...]
    validate_only: bool = wire(since=1, default=False)


@struct
class UpdatedFeature:
    """What became of one update."""

    feature: str
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(ExplainedResponse):
    """Whether the levels are in force."""

    results: tuple[UpdatedFeature, ...] = wire(until=1, default=(), ignorable=True)
