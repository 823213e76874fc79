"""UpdateFeatures: raise feature levels, such as metadata.version, once every broker supports them; never lower them.

The controller decides. If its release does not have this API yet, the response names the broker to upgrade first.
"""

from tailrace.cluster.feature_updates import FeatureUpdate
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import repeated
from tailrace.model.faults import Fault, InvalidRequest, UnsupportedVersion
from tailrace.wire.faults import error_of
from tailrace.wire.messages.update_features import (
    UPGRADE,
    FeatureToUpdate,
    UpdatedFeature,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tailrace.wire.schema import declaration


async def update_features(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    updates = [_wanted(one) for one in request.feature_updates]
    try:
        _check(request, call)
        await call.services.admin.raise_features(call.caller, updates, validate_only=request.validate_only)
    except Fault as fault:
        return UpdateFeaturesResponse(error_code=error_of(fault), error_message=str(fault))
    return UpdateFeaturesResponse(results=tuple(UpdatedFeature(feature=one.name) for one in updates))


def _wanted(one: FeatureToUpdate) -> FeatureUpdate:
    may_lower = one.allow_downgrade or one.upgrade_type != UPGRADE
    return FeatureUpdate(name=one.feature, level=one.max_version_level, may_lower=may_lower)


def _check(request: UpdateFeaturesRequest, call: Call) -> None:
    if twice := repeated(one.feature for one in request.feature_updates):
        raise InvalidRequest(f"the request names {', '.join(twice)} twice")
    admin, key = call.services.admin, declaration(UpdateFeaturesRequest).number
    if not admin.is_controller and not admin.may_forward(key, call.version):
        raise UnsupportedVersion(
            f"the release of the controller, broker {admin.cluster(call.caller).controller}, does not support "
            "UpdateFeatures: restart every broker with this release first"
        )
