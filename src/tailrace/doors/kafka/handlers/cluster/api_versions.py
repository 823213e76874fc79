"""ApiVersions: the supported APIs and versions, the supported feature levels, and the finalized ones."""

from tailrace.doors.kafka.call import Call
from tailrace.wire.compile import encode
from tailrace.wire.errors import Error
from tailrace.wire.framing import LENGTH_LAYOUT
from tailrace.wire.headers import API_VERSIONS_KEY, response_header
from tailrace.wire.messages.api_versions import (
    ApiRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeature,
    SupportedFeature,
)
from tailrace.wire.schema import Versions


async def api_versions(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    features = call.services.admin.features(call.caller)
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiRange(api_key=api.key, min_version=api.versions.first, max_version=api.versions.last)
            for api in call.client.door.apis.values()
        ),
        supported_features=tuple(
            SupportedFeature(name=name, min_version=levels.first, max_version=levels.last)
            for name, levels in features.supported.items()
        ),
        finalized_features_epoch=features.offset,
        finalized_features=tuple(
            FinalizedFeature(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.finalized.items()
        ),
    )


def unsupported_version(correlation_id: int, versions: Versions) -> bytes:
    """The response to an ApiVersions request of an unsupported version: in version 0, with the supported versions of
    ApiVersions (KIP-511)."""
    own = ApiRange(api_key=API_VERSIONS_KEY, min_version=versions.first, max_version=versions.last)
    body = encode(ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=(own,)), 0)
    answer = response_header(API_VERSIONS_KEY, correlation_id, flexible=False) + body
    return LENGTH_LAYOUT.pack(len(answer)) + answer
